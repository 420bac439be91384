#include <array>
#include <string>

#include "sim/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

const std::array<std::string, 5> kSeeds{
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 "
    "18:17:04.0319600,3180,8",
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,7,1.5,\"Chat,GPT\",472,18,490,Conversation log\n45,,0,GPT-4,1087,0,1087,API log\n",
    "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 1]}\n"
    "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 2]}\n",
    "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 6.5, \"input_length\": 33, \"output_length\": "
    "19, "
    "\"type\": \"text\", \"turn\": 1, \"hash_ids\": [1, 2, 3]}\n",
    "{\"foretoken_trace\":1,\"block_tokens\":16}\n{\"id\":\"a\",\"arrival_s\":0.5,\"input_tokens\":40,"
    "\"output_tokens\":3,"
    "\"prefix_hashes\":[5,6]}\n{\"after\":{\"id\":\"a\",\"delay_s\":1.5},\"input_tokens\":50,\"output_"
    "tokens\":0}\n"};

/// A copy with a few bytes changed, removed, doubled or cut off.
std::string mutated(const std::string& seed, std::uint64_t round) {
  constexpr std::string_view bytes = "0123456789-+.,:eE\"{}[]\n\r \t\\nul\x7f\xff";
  const RandomStream draws(99, round);
  std::string text = seed;
  const std::int64_t changes = draws.integer(0, 1, 4);
  for (std::uint64_t c = 1; c <= static_cast<std::uint64_t>(changes) && !text.empty(); ++c) {
    const auto at =
        static_cast<std::size_t>(draws.integer(10 * c, 0, static_cast<std::int64_t>(text.size()) - 1));
    const char byte = bytes[static_cast<std::size_t>(draws.integer(10 * c + 1, 0, bytes.size() - 1))];
    switch (draws.integer(10 * c + 2, 0, 4)) {
      case 0: text[at] = byte; break;
      case 1: text.insert(at, 1, byte); break;
      case 2: text.erase(at, static_cast<std::size_t>(draws.integer(10 * c + 3, 1, 9))); break;
      case 3: text.insert(at, text.substr(at, 20)); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a damaged trace is read or refused with its place, and never harms the reader", "[property]") {
  int refused = 0;
  for (std::uint64_t round = 0; round < 5000; ++round) {
    const std::string text = mutated(kSeeds[round % kSeeds.size()], round);
    TraceReadOptions options;
    options.sort = round % 3 == 0;
    options.spread_ties = round % 2 == 0 ? SpreadTies::uniform : SpreadTies::none;
    const std::string fault = fault_of(text, options);
    if (fault == "no error") continue;
    ++refused;
    INFO(text);
    CHECK(fault.substr(0, 2) == "t:");
  }
  CHECK(refused > 2000);
}
