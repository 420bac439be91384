#include "tests/workload/helpers.hpp"

#include <unistd.h>

#include "sim/base/files.hpp"

namespace foretoken::test {

ScratchFile::ScratchFile(const std::string& name, const std::string& content)
    : path_(
          (std::filesystem::temp_directory_path() / ("foretoken-" + std::to_string(::getpid()) + "-" + name))
              .string()) {
  write_file(path_, content);
}

}  // namespace foretoken::test
