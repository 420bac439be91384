#include "backend/prompt.hpp"

#include "sim/core/random.hpp"

namespace foretoken {
namespace {

/// Streams of their own for hashed and private text, so that an id never equals a hash by accident.
constexpr std::uint64_t kSharedText = 0x736861726564ULL;
constexpr std::uint64_t kPrivateText = 0x70726976617465ULL;

std::int32_t pick(std::uint64_t stream, std::uint64_t key, std::uint64_t position, std::int32_t vocab) {
  return static_cast<std::int32_t>(RandomStream(key, stream).integer(position, 0, vocab - 1));
}

}  // namespace

void Prompt::assign(const Request& request, std::int32_t vocab) {
  hashes_.assign(request.prefix_hashes.begin(), request.prefix_hashes.end());
  block_tokens_ = request.hash_block_tokens;
  tokens_ = request.prompt_tokens;
  vocab_ = vocab;
  own_ = static_cast<std::uint64_t>(request.id);
}

std::int32_t Prompt::token(std::int32_t position) const {
  const auto block = block_tokens_ > 0 ? static_cast<std::size_t>(position / block_tokens_) : hashes_.size();
  if (block >= hashes_.size()) return pick(kPrivateText, own_, static_cast<std::uint64_t>(position), vocab_);
  return pick(kSharedText, hashes_[block], static_cast<std::uint64_t>(position % block_tokens_), vocab_);
}

}  // namespace foretoken
