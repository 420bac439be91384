#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/core/request.hpp"

namespace foretoken {

/// The waiting requests in the order of a key, ties by ticket. Without keys it is a ring buffer (first come,
/// first served); otherwise a binary heap. Entries taken out of the middle are dropped when they reach the
/// head.
class WaitingQueue {
 public:
  /// A place in the queue; dead once its request waits no more, or waits elsewhere in it.
  struct Entry {
    std::int64_t key = 0;
    std::int64_t ticket = 0;
    Handle request = kNoHandle;
  };
  /// Keyed queues are heaps.
  explicit WaitingQueue(bool keyed) : keyed_(keyed) {}

  /// Number of living entries.
  std::size_t size() const { return living_; }
  bool empty() const { return living_ == 0; }

  /// Adds an entry; of equal keys the lower ticket is first. Without keys it goes to the end, or to the
  /// front.
  void push(const Entry& entry, bool front = false) {
    insert(entry, front);
    ++living_;
  }
  /// The first entry for which `alive` holds; the queue may not be empty. Dead entries before it are dropped.
  template <class Alive>
  Entry front(Alive alive) {
    while (!alive(peek())) drop();
    return peek();
  }
  /// Takes out what `front` returned.
  void pop() {
    drop();
    --living_;
  }
  /// An entry somewhere inside has died.
  void forget() { --living_; }
  /// Calls `visit` with every entry, in no particular order; dead ones included.
  template <class Visit>
  void for_each(Visit visit) const {
    if (keyed_)
      for (const Entry& e : heap_) visit(e);
    else
      for (std::size_t i = 0; i < count_; ++i) visit(ring_[(head_ + i) & (ring_.size() - 1)]);
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key > b.key : a.ticket > b.ticket;
  }
  const Entry& peek() const { return keyed_ ? heap_.front() : ring_[head_]; }
  void drop() {
    if (keyed_) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      heap_.pop_back();
    } else {
      head_ = (head_ + 1) & (ring_.size() - 1);
      --count_;
    }
  }
  void insert(const Entry& entry, bool front) {
    if (keyed_) {
      heap_.push_back(entry);
      std::push_heap(heap_.begin(), heap_.end(), later);
      return;
    }
    if (count_ == ring_.size()) grow();
    if (front) {
      head_ = (head_ + ring_.size() - 1) & (ring_.size() - 1);
      ring_[head_] = entry;
    } else {
      ring_[(head_ + count_) & (ring_.size() - 1)] = entry;
    }
    ++count_;
  }
  void grow() {
    std::vector<Entry> larger(std::max<std::size_t>(64, ring_.size() * 2));
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(head_ + i) & (ring_.size() - 1)];
    ring_.swap(larger);
    head_ = 0;
  }

  bool keyed_;
  std::size_t living_ = 0;
  std::vector<Entry> heap_;
  std::vector<Entry> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace foretoken
