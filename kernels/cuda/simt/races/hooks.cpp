#include <cstddef>
#include <cstdint>

#include "kernels/cuda/simt/machine.hpp"

// With -fsanitize=thread a compiler calls these at every access to memory that others might see. Linked
// instead of the sanitizer's own library they show the search for races what kernels do.
namespace {

using foretoken::cuda::simt::Access;
using foretoken::cuda::simt::Machine;

[[maybe_unused]] const bool kLooks = foretoken::cuda::simt::looks_for_races() = true;

void note(const void* address, std::size_t bytes, Access access) {
  Machine::mine().note(address, bytes, access);
}

}  // namespace

#define FT_HOOKS(bytes)                                                                    \
  void __tsan_read##bytes(void* address) { note(address, bytes, Access::read); }           \
  void __tsan_write##bytes(void* address) { note(address, bytes, Access::write); }         \
  void __tsan_unaligned_read##bytes(void* address) { note(address, bytes, Access::read); } \
  void __tsan_unaligned_write##bytes(void* address) { note(address, bytes, Access::write); }

#define FT_FETCH(bits, type, name, builtin)                                    \
  type __tsan_atomic##bits##_##name(volatile type* address, type value, int) { \
    note(const_cast<type*>(address), bits / 8, Access::atomic);                \
    return builtin(address, value, __ATOMIC_SEQ_CST);                          \
  }

#define FT_ATOMICS(bits, type)                                                                               \
  type __tsan_atomic##bits##_load(const volatile type* address, int) {                                       \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                          \
  void __tsan_atomic##bits##_store(volatile type* address, type value, int) {                                \
    note(const_cast<type*>(address), bits / 8, Access::atomic);                                              \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                          \
  FT_FETCH(bits, type, exchange, __atomic_exchange_n)                                                        \
  FT_FETCH(bits, type, fetch_add, __atomic_fetch_add)                                                        \
  FT_FETCH(bits, type, fetch_sub, __atomic_fetch_sub)                                                        \
  FT_FETCH(bits, type, fetch_and, __atomic_fetch_and)                                                        \
  FT_FETCH(bits, type, fetch_or, __atomic_fetch_or)                                                          \
  FT_FETCH(bits, type, fetch_xor, __atomic_fetch_xor)                                                        \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* address, type* expected, type value, int, \
                                                    int) {                                                   \
    note(const_cast<type*>(address), bits / 8, Access::atomic);                                              \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                          \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* address, type* expected, type value, int,   \
                                                  int) {                                                     \
    note(const_cast<type*>(address), bits / 8, Access::atomic);                                              \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }

extern "C" {
FT_HOOKS(1)
FT_HOOKS(2)
FT_HOOKS(4)
FT_HOOKS(8)
FT_HOOKS(16)
FT_ATOMICS(8, std::uint8_t)
FT_ATOMICS(16, std::uint16_t)
FT_ATOMICS(32, std::uint32_t)
FT_ATOMICS(64, std::uint64_t)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* address, std::size_t bytes) { note(address, bytes, Access::read); }
void __tsan_write_range(void* address, std::size_t bytes) { note(address, bytes, Access::write); }
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}
