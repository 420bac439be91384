#include "tests/fuzz/trace_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foretoken::fuzz_trace(data, size, foretoken::TraceFormat::csv);
  return 0;
}
