#include "backend/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <string>

#include "backend/live_executor.hpp"
#include "sim/core/random.hpp"
#include "sim/sim_executor.hpp"

namespace foretoken {
namespace {

/// One sequence of a shape: tokens that a step computes on top of a context.
struct SweepRow {
  std::int32_t tokens = 1;
  std::int32_t context = 0;
};
/// A step to be timed: sequences, and how many times in a row (decodes only, contexts grow). Of several in a
/// row the first is not counted: it follows another kind of step, which decodes of a run seldom do.
struct SweepShape {
  std::vector<SweepRow> chunks;
  std::vector<SweepRow> decodes;
  std::int32_t repeats = 1;
  /// Ended sequences that decode along, each on this context.
  std::int32_t dead_rows = 0;
  std::int32_t dead_context = 0;
};

std::vector<std::int32_t> kept(std::vector<std::int32_t> values, std::int32_t most) {
  values.push_back(most);
  std::erase_if(values, [&](std::int32_t v) { return v > most; });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void add_decodes(const CalibrationOptions& o, std::vector<SweepShape>& shapes) {
  const std::int32_t room = o.tokens_max - 8;
  for (const std::int32_t batch :
       kept({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 21, 24, 27, 32, 48, 64}, o.sequences_max)) {
    for (const std::int32_t context : kept({8, 64, 160, 320, 600}, room)) {
      SweepShape shape;
      shape.repeats = 6;
      shape.decodes.assign(static_cast<std::size_t>(batch), {1, context});
      shapes.push_back(shape);
    }
  }
}

void add_prompts(const CalibrationOptions& o, std::vector<SweepShape>& shapes) {
  for (const std::int32_t tokens :
       kept({2, 4, 8, 12, 17, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512}, o.batch_tokens_max))
    for (const std::int32_t context : {0, 96, 256, 512})
      if (tokens + context <= o.tokens_max - 8) shapes.push_back({{{tokens, context}}, {}, 1});
  for (std::int32_t count = 2; count <= 8; count *= 2)
    for (const std::int32_t tokens : {16, 64, 120})
      if (count * tokens <= o.batch_tokens_max)
        shapes.push_back({std::vector<SweepRow>(static_cast<std::size_t>(count), {tokens, 0}), {}, 1});
}

/// Batches as static batching runs them: prompts padded to the longest, dead rows among the decodes.
void add_padded(const CalibrationOptions& o, std::vector<SweepShape>& shapes) {
  for (const std::int32_t batch : kept({2, 4, 8, 16}, o.sequences_max)) {
    for (const std::int32_t longest : {16, 64, 128}) {
      if (batch * longest > o.batch_tokens_max) continue;
      SweepShape shape;
      for (std::int32_t row = 0; row < batch; ++row)
        shape.chunks.push_back({std::max(1, longest * (row + 1) / batch), 0});
      shapes.push_back(shape);
    }
    for (const std::int32_t context : kept({16, 160, 400}, o.tokens_max - 8)) {
      SweepShape shape;
      shape.repeats = 3;
      shape.dead_rows = batch / 2;
      shape.dead_context = context;
      shape.decodes.assign(static_cast<std::size_t>(batch - shape.dead_rows), {1, context});
      shapes.push_back(shape);
    }
  }
}

/// Prompts beside decodes, and decodes of unlike contexts, drawn.
void add_drawn(const CalibrationOptions& o, std::vector<SweepShape>& shapes) {
  const RandomStream draw(o.seed, 77);
  std::uint64_t n = 0;
  const std::int32_t context_max = std::min(o.tokens_max - 8, 700);
  for (int i = 0; i < 72; ++i) {
    SweepShape shape;
    // Every other one is small: light loads live there.
    const std::int32_t most = i % 2 == 0 ? o.sequences_max : std::min(o.sequences_max, 6);
    const auto batch = static_cast<std::int32_t>(draw.integer(n++, std::min(2, most), most));
    for (std::int32_t row = 0; row < batch; ++row)
      shape.decodes.push_back({1, static_cast<std::int32_t>(draw.integer(n++, 8, context_max))});
    shape.repeats = 5;
    if (i % 3 != 0) {
      shape.repeats = 1;
      if (shape.decodes.size() > 1) shape.decodes.pop_back();
      const std::int32_t left = o.batch_tokens_max - static_cast<std::int32_t>(shape.decodes.size());
      const double share = draw.uniform(n++);
      const std::int32_t tokens =
          std::clamp(static_cast<std::int32_t>(share * share * 300), 4, std::min(left, o.tokens_max - 8));
      shape.chunks.push_back({tokens, 0});
      if (i % 5 == 0 && tokens > 16) shape.chunks = {{tokens / 2, 0}, {tokens / 3, 0}};
    }
    shapes.push_back(shape);
  }
}

/// Runs shapes through a live executor as a scheduler would: sequences are admitted in a step that is not
/// timed.
class Sweep {
 public:
  Sweep(DeviceModel& model, const CalibrationOptions& options) : options_(options) {
    executor_.emplace(model, clock_, sweep_options(options));
  }

  void time_shape(const SweepShape& shape, std::int32_t pass, std::vector<Sample>* samples) {
    warm(shape);
    for (std::int32_t repeat = 0; repeat < shape.repeats; ++repeat) {
      timed(shape, repeat);
      if (samples == nullptr || (shape.repeats > 1 && repeat == 0)) continue;
      Sample sample;
      sample.shape = to_shape(features_of(plan_, chunk_features_));
      sample.regime = regime_of(sample.shape.features());
      sample.repeat = pass;
      sample.duration_ps = duration_.count();
      samples->push_back(std::move(sample));
    }
    for (std::uint32_t handle = 0; handle < sequences_; ++handle) executor_->on_release(Handle{handle});
  }

 private:
  void clear() {
    plan_ = StepPlan{};
    chunks_.clear();
    decodes_.clear();
    admissions_.clear();
  }
  void accept(std::int32_t prompt_tokens) {
    const Handle handle{sequences_};
    Offer offer;
    offer.request.id = RequestId{next_id_++};
    offer.request.prompt_tokens = prompt_tokens;
    offers_[sequences_] = offer;
    executor_->on_accept(handle, offer);
    ++sequences_;
  }
  void admit(std::uint32_t row, std::int32_t cached) {
    admissions_.push_back(
        {Slot{row}, Handle{row}, &offers_[row].request, offers_[row].request.prompt_tokens, cached, false});
  }
  /// Everybody with a context becomes resident one token before it.
  void warm(const SweepShape& shape) {
    sequences_ = 0;
    offers_.resize(shape.chunks.size() + shape.decodes.size());
    clear();
    for (const SweepRow& row : shape.chunks) accept(row.context + row.tokens + 1);
    for (const SweepRow& row : shape.decodes) accept(row.context + shape.repeats + 1);
    std::uint32_t i = 0;
    const auto enter = [&](const SweepRow& row) {
      if (row.context > 0) {
        admit(i, row.context - 1);
        chunks_.push_back({Slot{i}, Handle{i}, 1, row.context - 1, false});
      }
      ++i;
    };
    for (const SweepRow& row : shape.chunks) enter(row);
    for (const SweepRow& row : shape.decodes) enter(row);
    if (!chunks_.empty()) step();
  }
  void timed(const SweepShape& shape, std::int32_t repeat) {
    clear();
    std::uint32_t i = 0;
    std::int32_t longest = 0;
    for (const SweepRow& row : shape.chunks) {
      if (row.context == 0) admit(i, 0);
      chunks_.push_back({Slot{i}, Handle{i}, row.tokens, row.context, true});
      ++i;
      if (options_.padded) longest = std::max(longest, row.tokens);
    }
    for (const SweepRow& row : shape.chunks) plan_.padding_tokens += std::max(0, longest - row.tokens);
    plan_.dead_rows = shape.dead_rows;
    plan_.dead_context_sum = std::int64_t{shape.dead_rows} * shape.dead_context;
    plan_.decode_context_min = shape.decodes.empty() ? 0 : INT32_MAX;
    for (const SweepRow& row : shape.decodes) {
      const std::int32_t context = row.context + repeat;
      decodes_.push_back({Slot{i++}, context});
      plan_.decode_context_sum += context;
      plan_.decode_context_min = std::min(plan_.decode_context_min, context);
      plan_.decode_context_max = std::max(plan_.decode_context_max, context);
    }
    step();
  }
  void step() {
    plan_.number = number_++;
    plan_.chunks = chunks_;
    plan_.decodes = decodes_;
    plan_.admissions = admissions_;
    plan_.decode_count = static_cast<std::int32_t>(decodes_.size());
    plan_.new_tokens = plan_.decode_count;
    plan_.sampled_rows = plan_.decode_count;
    for (const Chunk& chunk : chunks_) {
      plan_.new_tokens += chunk.tokens;
      plan_.sampled_rows += chunk.sampled ? 1 : 0;
    }
    const Time begin = clock_.now();
    const Window window = executor_->launch(plan_, begin);
    duration_ = executor_->complete(plan_, window) - begin;
  }

  CalibrationOptions options_;
  WallClock clock_;
  std::optional<LiveExecutor> executor_;
  StepPlan plan_;
  std::vector<Chunk> chunks_;
  std::vector<DecodeRow> decodes_;
  std::vector<Admission> admissions_;
  std::vector<ChunkFeatures> chunk_features_;
  std::vector<Offer> offers_;
  std::uint32_t sequences_ = 0;
  std::uint32_t next_id_ = 0;
  std::uint64_t number_ = 0;
  Duration duration_{};
};

std::vector<SweepShape> all_shapes(const CalibrationOptions& options) {
  std::vector<SweepShape> shapes;
  add_decodes(options, shapes);
  add_prompts(options, shapes);
  if (options.padded)
    add_padded(options, shapes);
  else
    add_drawn(options, shapes);
  return shapes;
}

/// Copies between the two pools, of blocks that lie apart, as the steps of a live run make them.
std::vector<TransferSample> time_transfers(DeviceModel& model, const CalibrationOptions& options) {
  constexpr std::int32_t kBlocks = 256;
  DecoderOptions pools;
  pools.block_tokens = options.block_tokens;
  pools.kv_blocks = kBlocks;
  pools.host_blocks = kBlocks;
  const std::unique_ptr<Decoder> decoder = model.decoder(pools);
  const RandomStream draw(options.seed, 78);
  std::vector<TransferSample> samples;
  std::uint64_t n = 0;
  for (std::int32_t repeat = 0; repeat < 24; ++repeat)
    for (std::int32_t count = 1; count <= 64; count *= 2) {
      StepWork work;
      BlockCopies& copies = repeat % 2 == 0 ? work.copies_out : work.copies_in;
      for (std::int32_t i = 0; i < count; ++i) {
        copies.from.push_back(static_cast<std::int32_t>(draw.integer(n++, 0, kBlocks - 1)));
        copies.to.push_back((copies.from.front() + 4 * i) % kBlocks);
      }
      const auto begin = std::chrono::steady_clock::now();
      decoder->launch(work);
      decoder->finish();
      const std::chrono::duration<std::int64_t, std::pico> taken = std::chrono::steady_clock::now() - begin;
      if (repeat >= 4) samples.push_back({count, taken.count()});
    }
  return samples;
}

}  // namespace

CalibrationOptions calibration_options(const Scenario& scenario) {
  const Policy& policy = scenario.policy();
  CalibrationOptions options;
  options.sequences_max = policy.sequences_max;
  options.tokens_max = std::min(scenario.capacity.model_tokens_max, 1024);
  options.batch_tokens_max =
      policy.batch_tokens_max > 0 ? std::min(policy.batch_tokens_max, 1024) : options.tokens_max;
  options.block_tokens = policy.block_tokens;
  options.depth = policy.depth;
  options.padded = policy.padded;
  return options;
}

DecoderOptions sweep_options(const CalibrationOptions& options) {
  DecoderOptions live;
  live.block_tokens = options.block_tokens;
  const std::int64_t blocks = (options.tokens_max + options.block_tokens) / options.block_tokens;
  live.kv_blocks = blocks * (options.sequences_max + 8);
  live.tokens_max = options.tokens_max;
  live.rows = options.batch_tokens_max + options.sequences_max;
  live.sequences = options.sequences_max + 8;
  live.depth = options.depth;
  return live;
}

std::optional<double> machine_drift(DeviceModel& model, const Profile& profile,
                                    const CalibrationOptions& options) {
  constexpr std::size_t kEvery = 4;
  const std::vector<SweepShape> shapes = all_shapes(options);
  Sweep sweep(model, options);
  std::vector<Sample> again;
  sweep.time_shape(shapes.front(), 0, nullptr);
  // A stride through an interleaved order: every kind of step has its share, early and late.
  for (std::size_t first = 0; first < kEvery; first += 2)
    for (std::size_t i = first; i < shapes.size(); i += kEvery) {
      if (options.stop != nullptr && options.stop->load()) return std::nullopt;
      sweep.time_shape(shapes[i], 0, &again);
    }
  const SpikeShares spikes = spike_shares(profile.samples, profile.trim_share);
  double then = 0, now = 0;
  for (const Sample& sample : again) {
    const auto found = std::find_if(profile.samples.begin(), profile.samples.end(),
                                    [&](const ShapeSamples& s) { return s.shape == sample.shape; });
    if (found == profile.samples.end()) continue;
    const double mean_ps = trimmed_mean(found->durations_ps, profile.trim_share) *
                           (1 + spikes[static_cast<std::size_t>(found->regime)]);
    then += 1;
    now += static_cast<double>(sample.duration_ps) / mean_ps;
  }
  if (then < 1) return std::nullopt;
  return now / then - 1;
}

Calibration calibrate(DeviceModel& model, const CalibrationOptions& options) {
  const std::vector<SweepShape> shapes = all_shapes(options);
  Sweep sweep(model, options);
  Calibration result;
  const auto started = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  };
  const auto is_stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  for (std::size_t i = 0; i < shapes.size() && !is_stopped(); i += 4) sweep.time_shape(shapes[i], 0, nullptr);
  std::size_t timed = 0;
  const auto is_over = [&] { return timed >= shapes.size() && elapsed() >= options.seconds_max; };
  for (std::int32_t pass = 0; pass < options.passes && !is_over(); ++pass) {
    std::vector<std::size_t> order(shapes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Fisher and Yates, so that drifts of the machine fall on all shapes alike.
    const RandomStream draw(options.seed, 1000 + static_cast<std::uint64_t>(pass));
    for (std::size_t i = order.size(); i-- > 1;)
      std::swap(order[i], order[static_cast<std::size_t>(draw.integer(i, 0, static_cast<std::int64_t>(i)))]);
    for (const std::size_t i : order) {
      if (is_stopped()) return result;
      // The order differs from pass to pass, so that half a pass favours no kind of shape.
      if (is_over()) break;
      sweep.time_shape(shapes[i], pass, &result.samples);
      ++timed;
    }
    if (options.progress)
      options.progress("calibrate: pass " + std::to_string(pass + 1) + " of " +
                       std::to_string(options.passes));
  }
  result.passes = static_cast<double>(timed) / static_cast<double>(shapes.size());
  result.transfers = time_transfers(model, options);
  return result;
}

}  // namespace foretoken
