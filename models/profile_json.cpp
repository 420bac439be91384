#include "models/profile_json.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"

namespace foretoken {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr double kHuge = 1e24;
constexpr std::int32_t kSchemaVersion = 1;

template <class Number>
Json to_json(const std::vector<Number>& values) {
  Json array = Json::array();
  for (const Number value : values) array.push_back(value);
  return array;
}

Json origin_to_json(const ProfileOrigin& origin) {
  return Json::object({{"grade", grade_name(origin.grade)},
                       {"device", origin.device},
                       {"driver", origin.driver},
                       {"clocks", origin.clocks},
                       {"kernel_build", origin.kernel_build},
                       {"date", origin.date},
                       {"threads", origin.threads},
                       {"depth", origin.depth},
                       {"block_tokens", origin.block_tokens},
                       {"model", origin.shape.name},
                       {"shape", shape_to_hf(origin.shape)},
                       {"weight_precision", precision_name(origin.weight_precision)},
                       {"kv_precision", precision_name(origin.kv_precision)},
                       {"limits", device_to_json(origin.limits)}});
}

Json fit_to_json(const FittedCost& fit) {
  return Json::object({{"token_knots", to_json(fit.token_knots)},
                       {"body_ps", to_json(fit.body_ps)},
                       {"sampled_knots", to_json(fit.sampled_knots)},
                       {"head_ps", to_json(fit.head_ps)},
                       {"decode_knots", to_json(fit.decode_knots)},
                       {"decode_ps", to_json(fit.decode_ps)},
                       {"context_knots", to_json(fit.context_knots)},
                       {"decode_slope_ps", to_json(fit.decode_slope_ps)},
                       {"ragged_ps", to_json(fit.ragged_ps)},
                       {"chunk_ps", fit.chunk_ps},
                       {"chunk_context_ps", fit.chunk_context_ps},
                       {"pair_ps", to_json(fit.pair_ps)},
                       {"padded_token_ps", fit.padded_token_ps},
                       {"padded_row_ps", fit.padded_row_ps},
                       {"mixed_ps", fit.mixed_ps},
                       {"mixed_decode_ps", fit.mixed_decode_ps}});
}

Json sample_to_json(const ShapeSamples& sample) {
  const StepShape& shape = sample.shape;
  Json chunks = Json::array();
  for (const ChunkFeatures& chunk : shape.chunks)
    chunks.push_back(Json::array({chunk.tokens, chunk.context}));
  return Json::object({{"regime", regime_name(sample.regime)},
                       {"held_out", sample.held_out},
                       {"chunks", chunks},
                       {"decode_count", shape.decode_count},
                       {"decode_context_sum", shape.decode_context_sum},
                       {"decode_context_min", shape.decode_context_min},
                       {"decode_context_max", shape.decode_context_max},
                       {"sampled_rows", shape.sampled_rows},
                       {"padded_tokens", shape.padded_tokens},
                       {"padded_rows", shape.padded_rows},
                       {"durations_ps", to_json(sample.durations_ps)}});
}

Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

Json errors_to_json(const std::vector<RegimeError>& errors) {
  Json array = Json::array();
  for (const RegimeError& error : errors)
    array.push_back(Json::object({{"regime", regime_name(error.regime)},
                                  {"shapes", error.shapes},
                                  {"bias", error.bias},
                                  {"mape", error.mape},
                                  {"noise_floor_mape", number_or_null(error.noise_floor_mape)},
                                  {"spike_share", error.spike_share}}));
  return array;
}

Json content(const Profile& profile) {
  Json samples = Json::array();
  for (const ShapeSamples& sample : profile.samples) samples.push_back(sample_to_json(sample));
  const MeasuredRange& range = profile.range;
  return Json::object({{"schema_version", profile.schema_version},
                       {"origin", origin_to_json(profile.origin)},
                       {"trim_share", profile.trim_share},
                       {"held_out_errors", errors_to_json(profile.errors)},
                       {"samples_below_floor", profile.samples_below_floor},
                       {"range", Json::object({{"tokens_max", range.tokens_max},
                                               {"decodes_max", range.decodes_max},
                                               {"context_max", range.context_max}})},
                       {"transfer", Json::object({{"fixed_ps", profile.transfer.fixed_ps},
                                                  {"block_ps", profile.transfer.block_ps}})},
                       {"fit", fit_to_json(profile.fit)},
                       {"samples", samples}});
}

std::int32_t int32(JsonReader& reader, std::string_view key, std::int64_t low = 0) {
  return static_cast<std::int32_t>(reader.integer(key, low, kInt32Max));
}

const Json::Array& array(JsonReader& reader, std::string_view key) {
  const Json& value = reader.require(key);
  if (!value.is_array()) reader.fail(key, "an array", value.describe());
  return value.as_array();
}

std::vector<double> numbers(JsonReader& reader, std::string_view key, std::size_t count) {
  std::vector<double> result;
  for (const Json& value : array(reader, key)) {
    const bool is_good = value.is_number() && value.as_double() >= 0 && value.as_double() < kHuge;
    if (!is_good) reader.fail(key, "numbers of at least 0", value.dump());
    result.push_back(value.as_double());
  }
  if (result.size() != count)
    reader.fail(key, std::to_string(count) + " numbers, by its knots", std::to_string(result.size()));
  return result;
}

std::vector<std::int32_t> rising(JsonReader& reader, std::string_view key) {
  std::vector<std::int32_t> result;
  for (const Json& value : array(reader, key)) {
    const bool is_count = value.is_integer() && value.as_int64() >= 0 && value.as_int64() <= kInt32Max;
    if (!is_count || (!result.empty() && value.as_int64() <= result.back()))
      reader.fail(key, "rising counts", value.dump());
    result.push_back(static_cast<std::int32_t>(value.as_int64()));
  }
  return result;
}

Regime read_regime(JsonReader& reader) {
  return static_cast<Regime>(reader.choice("regime", {"prefill", "decode", "mixed", "ragged"}, 0));
}

ProfileOrigin read_origin(JsonReader reader, const std::string& place) {
  ProfileOrigin origin;
  origin.grade =
      static_cast<Grade>(reader.choice("grade", {"calibrated", "imported", "roofline", "stated"}, 0));
  origin.device = reader.string("device");
  origin.driver = reader.string("driver");
  origin.clocks = reader.string("clocks");
  origin.kernel_build = reader.string("kernel_build");
  origin.date = reader.string("date");
  origin.threads = int32(reader, "threads", 1);
  origin.depth = int32(reader, "depth");
  origin.block_tokens = int32(reader, "block_tokens", 1);
  origin.shape = shape_from_hf(reader.require("shape"), place + ": /origin/shape", reader.string("model"));
  origin.weight_precision =
      parse_precision(reader.string("weight_precision"), reader.place("weight_precision"));
  origin.kv_precision = parse_precision(reader.string("kv_precision"), reader.place("kv_precision"));
  origin.limits = device_from_json(reader.require("limits"), place + ": /origin/limits");
  reader.finish();
  return origin;
}

FittedCost read_fit(JsonReader reader) {
  FittedCost fit;
  fit.token_knots = rising(reader, "token_knots");
  fit.sampled_knots = rising(reader, "sampled_knots");
  fit.decode_knots = rising(reader, "decode_knots");
  fit.context_knots = rising(reader, "context_knots");
  if (fit.token_knots.empty()) reader.fail("token_knots", "at least one knot", "none");
  for (const auto& [key, knots] :
       {std::pair("sampled_knots", &fit.sampled_knots), std::pair("context_knots", &fit.context_knots)})
    if (knots->empty() || knots->front() != 0) reader.fail(key, "0 as the first knot", "none");
  fit.body_ps = numbers(reader, "body_ps", fit.token_knots.size());
  fit.head_ps = numbers(reader, "head_ps", fit.sampled_knots.size());
  fit.decode_ps = numbers(reader, "decode_ps", fit.decode_knots.size());
  fit.decode_slope_ps =
      numbers(reader, "decode_slope_ps", fit.decode_knots.size() * fit.context_knots.size());
  fit.ragged_ps = numbers(reader, "ragged_ps", fit.decode_knots.size());
  fit.pair_ps = numbers(reader, "pair_ps", fit.context_knots.size());
  fit.chunk_ps = reader.number("chunk_ps", 0.0, kHuge);
  fit.chunk_context_ps = reader.number("chunk_context_ps", 0.0, kHuge);
  fit.padded_token_ps = reader.number("padded_token_ps", 0.0, kHuge);
  fit.padded_row_ps = reader.number("padded_row_ps", 0.0, kHuge);
  fit.mixed_ps = reader.number("mixed_ps", -kHuge, kHuge);
  fit.mixed_decode_ps = reader.number("mixed_decode_ps", -kHuge, kHuge);
  reader.finish();
  return fit;
}

std::vector<ChunkFeatures> read_chunks(JsonReader& reader) {
  std::vector<ChunkFeatures> chunks;
  for (const Json& value : array(reader, "chunks")) {
    const bool is_pair = value.is_array() && value.as_array().size() == 2;
    for (std::size_t i = 0; i < 2; ++i) {
      const Json* number = is_pair ? &value.as_array()[i] : nullptr;
      if (!number || !number->is_integer() || number->as_int64() < 0 || number->as_int64() > kInt32Max)
        reader.fail("chunks", "pairs [tokens, context]", value.dump());
    }
    chunks.push_back({static_cast<std::int32_t>(value.as_array()[0].as_int64()),
                      static_cast<std::int32_t>(value.as_array()[1].as_int64())});
  }
  return chunks;
}

ShapeSamples read_sample(JsonReader reader) {
  ShapeSamples sample;
  sample.regime = read_regime(reader);
  sample.held_out = reader.boolean("held_out", false);
  sample.shape.chunks = read_chunks(reader);
  sample.shape.decode_count = int32(reader, "decode_count");
  sample.shape.decode_context_sum = reader.integer("decode_context_sum", 0, kInt64Max);
  sample.shape.decode_context_min = int32(reader, "decode_context_min");
  sample.shape.decode_context_max = int32(reader, "decode_context_max");
  sample.shape.sampled_rows = int32(reader, "sampled_rows");
  sample.shape.padded_tokens = reader.integer("padded_tokens", 0, kInt64Max);
  sample.shape.padded_rows = int32(reader, "padded_rows");
  for (const Json& value : array(reader, "durations_ps")) {
    if (!value.is_integer() || value.as_int64() <= 0)
      reader.fail("durations_ps", "picoseconds above 0", value.dump());
    sample.durations_ps.push_back(value.as_int64());
  }
  reader.finish();
  return sample;
}

RegimeError read_error(JsonReader reader) {
  RegimeError error;
  error.regime = read_regime(reader);
  error.shapes = int32(reader, "shapes");
  error.bias = reader.number("bias", -kHuge, kHuge);
  error.mape = reader.number("mape", 0.0, kHuge);
  if (!reader.require("noise_floor_mape").is_null())
    error.noise_floor_mape = reader.number("noise_floor_mape", 0.0, kHuge);
  error.spike_share = reader.number("spike_share", -kHuge, kHuge);
  reader.finish();
  return error;
}

Profile read_content(JsonReader& reader, const std::string& place) {
  Profile profile;
  profile.schema_version = int32(reader, "schema_version");
  if (profile.schema_version != kSchemaVersion)
    reader.fail("schema_version", std::to_string(kSchemaVersion), std::to_string(profile.schema_version));
  profile.hash = reader.string("hash");
  profile.origin = read_origin(reader.child("origin"), place);
  profile.trim_share = reader.number("trim_share", 0.0, 0.5);
  profile.samples_below_floor = reader.integer("samples_below_floor", 0, kInt64Max);
  JsonReader range = reader.child("range");
  profile.range = {range.integer("tokens_max", 0, kInt64Max), int32(range, "decodes_max"),
                   int32(range, "context_max")};
  range.finish();
  JsonReader transfer = reader.child("transfer");
  profile.transfer = {transfer.integer("fixed_ps", 0, kInt64Max), transfer.integer("block_ps", 0, kInt64Max)};
  transfer.finish();
  profile.fit = read_fit(reader.child("fit"));
  for (const Json& value : array(reader, "held_out_errors"))
    profile.errors.push_back(
        read_error({value, place, "/held_out_errors/" + std::to_string(profile.errors.size())}));
  for (const Json& value : array(reader, "samples"))
    profile.samples.push_back(
        read_sample({value, place, "/samples/" + std::to_string(profile.samples.size())}));
  reader.finish();
  return profile;
}

}  // namespace

std::string content_hash(const Profile& profile) { return sha256(content(profile).dump()); }

Json profile_to_json(const Profile& profile) {
  Json json = Json::object({{"schema_version", profile.schema_version}, {"hash", profile.hash}});
  const Json rest = content(profile);
  for (const auto& [key, value] : rest.as_object()) json.set(key, value);
  return json;
}

Profile profile_from_json(const Json& json, const std::string& place) {
  JsonReader reader(json, place);
  Profile profile = read_content(reader, place);
  if (const std::string hash = content_hash(profile); hash != profile.hash)
    reader.fail("hash", "the hash of the content, " + hash + " (was the profile edited?)", profile.hash);
  return profile;
}

Profile read_profile(const std::string& path) { return profile_from_json(Json::parse_file(path), path); }

void write_profile(const std::string& path, const Profile& profile) {
  // One sample a line: readable, and a difference between two profiles shows which shapes changed.
  Json head = profile_to_json(profile);
  const Json::Array samples = head.find("samples")->as_array();
  head.set("samples", Json());
  std::string text = head.dump(2);
  const std::string kEmpty = "\"samples\": null";
  std::string lines = "\"samples\": [";
  for (const Json& sample : samples)
    lines.append(&sample == samples.data() ? "\n    " : ",\n    ") += sample.dump();
  text.replace(text.rfind(kEmpty), kEmpty.size(), lines + "\n  ]");
  write_file(path, text + "\n");
}

}  // namespace foretoken
