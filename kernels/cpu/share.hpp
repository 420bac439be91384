#pragma once
#include <cstdint>

namespace foretoken::cpu {

/// One participant of a parallel call: the `index`-th of `count`. All participants make the same call with
/// their own share, and each does its part. `Share{0, 1}` does everything.
struct Share {
  int index = 0;
  int count = 1;
};

/// A half-open range of rows, columns or items.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The part of [0, total) that belongs to `share`; parts are consecutive and differ by one at most.
constexpr Range split(std::int64_t total, Share share) {
  return {total * share.index / share.count, total * (share.index + 1) / share.count};
}

}  // namespace foretoken::cpu
