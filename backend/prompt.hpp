#pragma once
#include <cstdint>
#include <vector>

#include "sim/core/request.hpp"

namespace foretoken {

/// The text of a prompt as a pure function of what the request says of it: token j follows from the hash of
/// its block and its place in it, so that prompts which share hashes share tokens; what no hash covers
/// follows from the request's id.
class Prompt {
 public:
  /// Keeps a copy of the hashes. `vocab` bounds the ids.
  void assign(const Request& request, std::int32_t vocab);
  /// Token at `position`, below `tokens()`.
  std::int32_t token(std::int32_t position) const;
  std::int32_t tokens() const { return tokens_; }

 private:
  std::vector<std::uint64_t> hashes_;
  std::int32_t block_tokens_ = 0;
  std::int32_t tokens_ = 0;
  std::int32_t vocab_ = 1;
  std::uint64_t own_ = 0;
};

}  // namespace foretoken
