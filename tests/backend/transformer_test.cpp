#include "backend/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/isa.hpp"
#include "sim/core/random.hpp"
#include "tests/backend/reference_forward.hpp"
#include "tests/backend/tiny_model.hpp"
#include "tests/catch.hpp"

using namespace foretoken;
using foretoken::testing::HandDriven;
using foretoken::testing::reference_logits;
using foretoken::testing::tiny_shape;

namespace {

using Logits = std::vector<std::vector<float>>;

std::vector<std::int32_t> text(std::uint64_t seed, int tokens, int vocab) {
  std::vector<std::int32_t> result;
  const RandomStream random(seed, 7);
  for (int i = 0; i < tokens; ++i)
    result.push_back(static_cast<std::int32_t>(random.integer(static_cast<std::uint64_t>(i), 0, vocab - 1)));
  return result;
}

double distance(const std::vector<float>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return std::isfinite(largest) ? largest : std::numeric_limits<double>::infinity();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The ISA to test, restored at the end; all later tests get the fastest again.
class IsaGuard {
 public:
  explicit IsaGuard(cpu::Isa isa) { cpu::set_isa(isa); }
  ~IsaGuard() { cpu::set_isa(std::nullopt); }
};

/// A prompt of 75 tokens in chunks of `chunk`, beside a decode and a short prompt; the logits of its last
/// token.
std::vector<float> chunked(HandDriven& model, Slot slot, const std::vector<std::int32_t>& prompt,
                           std::size_t chunk) {
  Logits logits;
  for (std::size_t done = 0; done < prompt.size(); done += chunk) {
    const std::size_t count = std::min(chunk, prompt.size() - done);
    model.add(slot, std::span(prompt).subspan(done, count), static_cast<std::int32_t>(done));
    logits = model.run();
  }
  return logits.back();
}

}  // namespace

TEST_CASE("the forward pass agrees with plain double precision on every ISA, in bf16 and in f32", "[unit]") {
  const cpu::Isa isa = GENERATE(from_range(cpu::available_isas()));
  const ElementType type = GENERATE(ElementType::f32, ElementType::bf16);
  const int threads = GENERATE(1, 3);
  const IsaGuard guard(isa);
  Runtime<Cpu> runtime(threads);
  ModelShape shape = tiny_shape();
  shape.qkv_bias = true;
  shape.tied_embeddings = type == ElementType::bf16;
  const Weights<Cpu> weights = random_weights(shape, type, 11, runtime);
  HandDriven model(runtime, weights, type);
  model.poison();
  const auto first = text(1, 40, shape.vocab);
  const auto second = text(2, 23, shape.vocab);
  // Step 1: the first prompt whole. Step 2: its decode beside a chunk of the second. Step 3: two decodes'
  // worth.
  const auto expected_first = reference_logits(weights, first);
  const auto expected_second = reference_logits(weights, second);
  const double tolerance = type == ElementType::f32 ? 2e-4 : 0.12;
  model.add(Slot{0}, std::span(first).first(38), 0);
  model.sample(5);
  Logits logits = model.run();
  CAPTURE(cpu::isa_name(isa), static_cast<int>(type), threads);
  CHECK(distance(logits[0], expected_first[37]) < tolerance);
  CHECK(distance(logits[1], expected_first[5]) < tolerance);
  model.add(Slot{1}, std::span(second).first(22), 0);
  model.add(Slot{0}, std::span(first).subspan(38, 1), 38);
  logits = model.run();
  CHECK(distance(logits[0], expected_second[21]) < tolerance);
  CHECK(distance(logits[1], expected_first[38]) < tolerance);
  model.add(Slot{0}, std::span(first).subspan(39, 1), 39);
  model.add(Slot{1}, std::span(second).subspan(22, 1), 22);
  logits = model.run();
  CHECK(distance(logits[0], expected_first[39]) < tolerance);
  CHECK(distance(logits[1], expected_second[22]) < tolerance);
  const auto largest = std::max_element(logits[1].begin(), logits[1].end());
  CHECK(model.tokens()[1] == static_cast<std::int32_t>(largest - logits[1].begin()));
}

TEST_CASE("logits of random weights have a spread of about one", "[unit]") {
  Runtime<Cpu> runtime(1);
  ModelShape shape = tiny_shape();
  shape.tied_embeddings = GENERATE(false, true);
  const Weights<Cpu> weights = random_weights(shape, ElementType::f32, 5, runtime);
  const auto logits = reference_logits(weights, text(1, 20, shape.vocab));
  double squares = 0;
  for (const double value : logits.back()) squares += value * value;
  const double spread = std::sqrt(squares / shape.vocab);
  CHECK(spread > 0.5);
  CHECK(spread < 2.0);
}

TEST_CASE("permuted pages change no bit, and unused ones are never read", "[unit]") {
  const ElementType type = GENERATE(ElementType::f32, ElementType::bf16);
  const int block_tokens = GENERATE(16, 5, 32);
  Runtime<Cpu> runtime(2);
  const ModelShape shape = tiny_shape();
  const Weights<Cpu> weights = random_weights(shape, type, 3, runtime);
  const auto prompt = text(4, 75, shape.vocab);
  HandDriven plain(runtime, weights, type, block_tokens);
  const std::vector<float> expected = chunked(plain, Slot{0}, prompt, 30);
  HandDriven permuted(runtime, weights, type, block_tokens);
  permuted.poison();
  std::vector<std::int32_t> table;
  for (int i = 0; i < (75 + block_tokens - 1) / block_tokens; ++i) table.push_back((i * 37 + 11) % 64);
  permuted.tables().use_external_table(Slot{0}, table);
  CHECK(same_bits(chunked(permuted, Slot{0}, prompt, 30), expected));
}

TEST_CASE("a sequence's logits depend on neither its batch mates nor the number of threads, in any bit",
          "[unit]") {
  const cpu::Isa isa = GENERATE(from_range(cpu::available_isas()));
  const ElementType type = GENERATE(ElementType::f32, ElementType::bf16);
  const IsaGuard guard(isa);
  Runtime<Cpu> one(1);
  const ModelShape shape = tiny_shape();
  const Weights<Cpu> weights = random_weights(shape, type, 9, one);
  const auto prompt = text(6, 33, shape.vocab);
  HandDriven alone(one, weights, type);
  alone.add(Slot{0}, std::span(prompt).first(32), 0);
  alone.run();
  alone.add(Slot{0}, std::span(prompt).last(1), 32);
  const std::vector<float> expected = alone.run().front();

  Runtime<Cpu> three(3);
  HandDriven crowded(three, weights, type);
  crowded.add(Slot{1}, text(8, 17, shape.vocab), 0);
  crowded.add(Slot{0}, std::span(prompt).first(32), 0);
  crowded.run();
  for (std::uint32_t mate = 2; mate < 9; ++mate)
    crowded.add(Slot{mate}, text(mate, static_cast<int>(mate), shape.vocab), 0);
  crowded.add(Slot{0}, std::span(prompt).last(1), 32);
  crowded.add(Slot{1}, text(10, 1, shape.vocab), 17);
  CAPTURE(cpu::isa_name(isa), static_cast<int>(type));
  CHECK(same_bits(crowded.run()[7], expected));
}

TEST_CASE("a prompt in chunks, or token by token, gives the logits of the whole, in every bit", "[unit]") {
  const ElementType type = GENERATE(ElementType::f32, ElementType::bf16);
  Runtime<Cpu> runtime(2);
  const ModelShape shape = tiny_shape();
  const Weights<Cpu> weights = random_weights(shape, type, 3, runtime);
  const auto prompt = text(4, 75, shape.vocab);
  HandDriven whole(runtime, weights, type);
  const std::vector<float> expected = chunked(whole, Slot{0}, prompt, prompt.size());
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{16}, std::size_t{64}}) {
    HandDriven cut(runtime, weights, type);
    CAPTURE(chunk);
    CHECK(same_bits(chunked(cut, Slot{0}, prompt, chunk), expected));
  }
}

TEST_CASE("the comparison with double precision notices a wrong page", "[unit]") {
  Runtime<Cpu> runtime(1);
  const ModelShape shape = tiny_shape();
  const Weights<Cpu> weights = random_weights(shape, ElementType::f32, 3, runtime);
  const auto prompt = text(4, 40, shape.vocab);
  HandDriven model(runtime, weights, ElementType::f32);
  model.add(Slot{0}, std::span(prompt).first(39), 0);
  model.run();
  // The seeded fault: the second block of the table is swapped for one that nobody wrote.
  std::vector<std::int32_t> table(model.tables().table(Slot{0}).begin(), model.tables().table(Slot{0}).end());
  table[1] = 60;
  model.tables().release(Slot{0});
  model.tables().use_external_table(Slot{0}, table);
  model.add(Slot{0}, std::span(prompt).last(1), 39);
  CHECK(distance(model.run().front(), reference_logits(weights, prompt).back()) > 1e-2);
}
