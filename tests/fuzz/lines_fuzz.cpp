#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "tests/fuzz/fuzz_file.hpp"

using namespace foretoken;

/// Any file, packed or not, gives lines without ends or an InputError; numbers in it are read or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const FuzzFile file(data, size);
  try {
    LineReader reader(file.path());
    std::string_view line;
    std::int64_t count = 0;
    while (reader.next(line)) {
      FT_CHECK(reader.line() == ++count, count);
      FT_CHECK(line.find('\n') == std::string_view::npos);
      for (const std::string_view piece : split(line, ',')) {
        static_cast<void>(parse_double(piece));
        if (const auto duration = parse_duration_ps(piece)) static_cast<void>(duration_text(*duration));
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
