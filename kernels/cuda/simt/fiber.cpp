#include "kernels/cuda/simt/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#if defined(FORETOKEN_SIMT_UCONTEXT)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(FORETOKEN_SIMT_UCONTEXT)
extern "C" void foretoken_simt_switch(void** from, void* to);
#endif

namespace foretoken::cuda::simt {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 256 << 10;
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif
// An overflowing stack meets a page that nobody may touch.
constexpr std::size_t kGuardBytes = 4096;

// The fiber that was left last by this OS thread: its stack's bounds become known on arrival elsewhere.
thread_local Fiber* left = nullptr;

}  // namespace

Fiber::Fiber(void (*entry)()) {
  void* mapped = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<unsigned char*>(mapped);
  mprotect(stack_, kGuardBytes, PROT_NONE);
  bottom_ = stack_;
  bytes_ = kStackBytes;
#if defined(FORETOKEN_SIMT_UCONTEXT)
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack_;
  context->uc_stack.ss_size = kStackBytes;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  saved_ = context;
#elif defined(__x86_64__)
  // Six registers, the address that the switch returns to, and one word so that the entry finds its stack aligned.
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes) - 8;
  top[6] = reinterpret_cast<void*>(entry);
  saved_ = top;
#else
  // The frame that the switch restores: x30 is where it returns to.
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes - 160);
  top[11] = reinterpret_cast<void*>(entry);
  saved_ = top;
#endif
#if defined(__SANITIZE_THREAD__)
  sanitizer_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (stack_ != nullptr && sanitizer_ != nullptr) __tsan_destroy_fiber(sanitizer_);
#endif
#if defined(FORETOKEN_SIMT_UCONTEXT)
  delete static_cast<ucontext_t*>(saved_);
#endif
  if (stack_ == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_ + kGuardBytes, kStackBytes - kGuardBytes);
#endif
  munmap(stack_, kStackBytes);
}

void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (left != nullptr) {
    left->bottom_ = bottom;
    left->bytes_ = bytes;
  }
#endif
}

void Fiber::switch_to(Fiber& to) {
  left = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_, to.bottom_, to.bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  if (sanitizer_ == nullptr) sanitizer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.sanitizer_, 0);
#endif
#if defined(FORETOKEN_SIMT_UCONTEXT)
  if (saved_ == nullptr) saved_ = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(saved_), static_cast<ucontext_t*>(to.saved_));
#else
  foretoken_simt_switch(&saved_, to.saved_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_, nullptr, nullptr);
#endif
}

}  // namespace foretoken::cuda::simt
