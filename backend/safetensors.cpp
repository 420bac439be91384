#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "backend/tensors.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"

namespace foretoken {
namespace {

/// The limit of the reference implementation: a longer header is no header.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;

/// A file mapped for reading.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw InputError(path + ": cannot open: " + std::strerror(errno));
    struct stat status {};
    const bool usable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (usable && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    ::close(descriptor);
    if (!usable) throw InputError(path + ": expected a regular file");
    if (size_ == 0) throw InputError(path + ": expected a safetensors file, found an empty file");
    if (data_ == MAP_FAILED) throw InputError(path + ": cannot map: " + std::strerror(errno));
  }
  ~MappedFile() { ::munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Where a tensor lies; offsets count from the end of the header.
struct Entry {
  const MappedFile* file = nullptr;
  std::string path;
  std::string type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t data_begin = 0;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// Bytes of one number of a safetensors type; 0 for one that is not known.
std::uint64_t type_bytes(const std::string& type) {
  static const std::map<std::string, std::uint64_t> sizes{
      {"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4}, {"U32", 4},     {"BF16", 2},   {"F16", 2},
      {"I16", 2}, {"U16", 2}, {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  const auto found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

/// A half-precision number (IEEE 754 binary16) as a float; exact.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t rest = half & 0x7fffU;
  if (rest < 0x0400U) {  // zero and subnormals: a multiple of 2^-24
    const float value = static_cast<float>(rest) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t exponent = rest >= 0x7c00U ? 0x7f800000U : ((rest >> 10) + 112U) << 23;
  return std::bit_cast<float>(sign | exponent | (rest & 0x03ffU) << 13);
}

/// One checked header.
class HeaderReader {
 public:
  HeaderReader(std::string path, const MappedFile& file) : path_(std::move(path)), file_(file) {}

  std::vector<std::pair<std::string, Entry>> read() {
    const std::uint64_t length = header_bytes();
    data_begin_ = 8 + static_cast<std::size_t>(length);
    const std::string_view text(reinterpret_cast<const char*>(file_.data()) + 8,
                                static_cast<std::size_t>(length));
    const Json header = Json::parse(text, path_ + " (header)");
    if (!header.is_object()) throw input_error(path_ + " (header)", "an object", header.describe());
    std::vector<std::pair<std::string, Entry>> entries;
    for (const Json::Member& member : header.as_object())
      if (member.first != "__metadata__")
        entries.emplace_back(member.first, entry(member.first, member.second));
    check_layout(entries);
    return entries;
  }

 private:
  std::uint64_t header_bytes() const {
    if (file_.size() < 8)
      throw input_error(path_, "8 bytes of header length",
                        "a file of " + std::to_string(file_.size()) + " bytes");
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<std::uint64_t>(file_.data()[i]);
    const std::uint64_t room = std::min<std::uint64_t>(kHeaderBytesMax, file_.size() - 8);
    if (length > room)
      throw input_error(path_, "a header of at most " + std::to_string(room) + " bytes",
                        std::to_string(length));
    return length;
  }

  std::string place(const std::string& name) const { return path_ + ": tensor \"" + name + "\""; }

  std::uint64_t whole(const std::string& name, const std::string& what, const Json& value) const {
    if (!value.is_integer() || value.as_double() < 0)
      throw input_error(place(name) + ": " + what, "a whole number of at least 0", value.describe());
    return value.as_uint64();
  }

  Entry entry(const std::string& name, const Json& json) const {
    const Json* type = json.find("dtype");
    const Json* shape = json.find("shape");
    const Json* offsets = json.find("data_offsets");
    if (type == nullptr || !type->is_string()) throw InputError(place(name) + ": expected a text \"dtype\"");
    if (shape == nullptr || !shape->is_array())
      throw InputError(place(name) + ": expected an array \"shape\"");
    if (offsets == nullptr || !offsets->is_array() || offsets->as_array().size() != 2)
      throw InputError(place(name) + ": expected \"data_offsets\" with two numbers");
    Entry result;
    result.file = &file_;
    result.path = path_;
    result.type = type->as_string();
    result.data_begin = data_begin_;
    result.begin = whole(name, "data_offsets[0]", offsets->as_array()[0]);
    result.end = whole(name, "data_offsets[1]", offsets->as_array()[1]);
    const std::uint64_t room = file_.size() - data_begin_;
    if (result.begin > result.end || result.end > room)
      throw input_error(place(name), "offsets that rise within " + std::to_string(room) + " bytes of data",
                        std::to_string(result.begin) + " to " + std::to_string(result.end));
    std::uint64_t elements = 1;
    for (const Json& size : shape->as_array()) {
      const std::uint64_t extent = whole(name, "shape", size);
      if (extent > room || (extent != 0 && elements > room / extent))
        throw input_error(place(name), "a shape that fits the file",
                          "one of more than " + std::to_string(room) + " numbers");
      elements *= extent;
      result.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const std::uint64_t bytes = type_bytes(result.type);
    if (bytes != 0 && elements * bytes != result.end - result.begin)
      throw input_error(
          place(name),
          std::to_string(elements * bytes) + " bytes for " + result.type + " " + shape_text(result.shape),
          std::to_string(result.end - result.begin));
    return result;
  }

  /// Tensors must fill the data one after the other: an overlap or a gap means a damaged or hostile file.
  void check_layout(const std::vector<std::pair<std::string, Entry>>& entries) const {
    std::vector<const std::pair<std::string, Entry>*> order;
    for (const auto& item : entries) order.push_back(&item);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    std::uint64_t end = 0;
    for (const auto* item : order) {
      if (item->second.begin != end)
        throw input_error(place(item->first), "data that begins at " + std::to_string(end),
                          std::to_string(item->second.begin) +
                              (item->second.begin < end ? " (overlaps the tensor before)" : " (a gap)"));
      end = item->second.end;
    }
    if (end != file_.size() - data_begin_)
      throw input_error(path_, std::to_string(end) + " bytes of data, as the header says",
                        std::to_string(file_.size() - data_begin_));
  }

  std::string path_;
  const MappedFile& file_;
  std::size_t data_begin_ = 0;
};

class SafetensorsFolder final : public TensorSource {
 public:
  explicit SafetensorsFolder(const std::string& folder) : folder_(folder) {
    namespace fs = std::filesystem;
    const fs::path root(folder);
    if (fs::exists(root / "model.safetensors")) {
      add_file((root / "model.safetensors").string());
    } else if (fs::exists(root / "model.safetensors.index.json")) {
      add_shards(root);
    } else {
      throw InputError(folder +
                       ": expected model.safetensors or model.safetensors.index.json, found neither");
    }
  }

  TensorView tensor(const TensorSpec& spec) override {
    const auto found = entries_.find(spec.name);
    if (found == entries_.end())
      throw input_error(folder_, "a tensor \"" + spec.name + "\"", "none of that name");
    const Entry& entry = found->second;
    const std::string place = entry.path + ": tensor \"" + spec.name + "\"";
    std::vector<std::int64_t> expected{spec.rows};
    if (spec.columns != 0) expected.push_back(spec.columns);
    if (entry.shape != expected)
      throw input_error(place, "shape " + shape_text(expected), shape_text(entry.shape));
    const std::byte* data = entry.file->data() + entry.data_begin + entry.begin;
    const auto elements = static_cast<std::size_t>(spec.elements());
    if (entry.type == "F16") return widen(data, elements);
    if (entry.type != "F32" && entry.type != "BF16")
      throw input_error(place, "dtype F32, F16 or BF16", entry.type);
    const ElementType type = entry.type == "F32" ? ElementType::f32 : ElementType::bf16;
    if (reinterpret_cast<std::uintptr_t>(data) % element_bytes(type) == 0) return {data, type};
    // A header need not be a multiple of the number's size long.
    aligned_.resize(elements);
    std::memcpy(aligned_.data(), data, elements * element_bytes(type));
    return {aligned_.data(), type};
  }

 private:
  TensorView widen(const std::byte* halves, std::size_t elements) {
    aligned_.resize(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, halves + 2 * i, 2);
      aligned_[i] = half_to_float(half);
    }
    return {aligned_.data(), ElementType::f32};
  }

  void add_file(const std::string& path) {
    files_.push_back(std::make_unique<MappedFile>(path));
    for (auto& [name, entry] : HeaderReader(path, *files_.back()).read())
      if (!entries_.emplace(name, entry).second)
        throw InputError(path + ": tensor \"" + name + "\" is also in " + entries_.at(name).path);
  }

  void add_shards(const std::filesystem::path& root) {
    const std::string path = (root / "model.safetensors.index.json").string();
    const Json index = Json::parse_file(path);
    const Json* map = index.find("weight_map");
    if (map == nullptr || !map->is_object()) throw InputError(path + ": expected an object \"weight_map\"");
    std::vector<std::string> names;
    for (const Json::Member& member : map->as_object()) {
      if (!member.second.is_string())
        throw input_error(path + ": /weight_map/" + member.first, "a file name", member.second.describe());
      const std::string& name = member.second.as_string();
      // A name that leaves the folder is no shard of this model.
      if (name.empty() || std::filesystem::path(name).filename() != std::filesystem::path(name))
        throw input_error(path + ": /weight_map/" + member.first, "a plain file name", "\"" + name + "\"");
      names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names) add_file((root / name).string());
    for (const Json::Member& member : map->as_object())
      if (entries_.find(member.first) == entries_.end())
        throw input_error(path, "tensor \"" + member.first + "\" in " + member.second.as_string(), "none");
  }

  std::string folder_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, Entry> entries_;
  std::vector<float> aligned_;
};

}  // namespace

std::unique_ptr<TensorSource> safetensors_folder(const std::string& folder) {
  return std::make_unique<SafetensorsFolder>(folder);
}

}  // namespace foretoken
