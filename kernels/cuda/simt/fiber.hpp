#pragma once
#include <cstddef>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(FORETOKEN_SIMT_UCONTEXT)
#define FORETOKEN_SIMT_UCONTEXT 1
#endif

namespace foretoken::cuda::simt {

/// A thread of control that gives way only by itself. Default-constructed it stands for the stack of the OS thread
/// that first switches away from it.
class Fiber {
 public:
  Fiber() = default;
  /// A fiber that calls `entry` when first switched to; `entry` must not return. Throws std::bad_alloc without memory.
  explicit Fiber(void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives control from this fiber, which must be the running one, to `to`; returns when some fiber gives it back.
  void switch_to(Fiber& to);

  /// To be called first of all in an entry function, for the sanitizers.
  static void arrived();

 private:
  // Where the registers lie while suspended, or the ucontext_t.
  void* saved_ = nullptr;
  unsigned char* stack_ = nullptr;
  // What AddressSanitizer and ThreadSanitizer know the stack by.
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* sanitizer_ = nullptr;
};

}  // namespace foretoken::cuda::simt
