#pragma once
#include <cstdlib>
#include <iostream>

namespace foretoken::detail {

template <class... Values>
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const Values&... values) {
  std::cerr << file << ':' << line << ": internal error: " << condition << " does not hold";
  ((std::cerr << ' ' << values), ...);
  std::cerr << std::endl;
  std::abort();
}

}  // namespace foretoken::detail

/// Aborts with place, condition and values when our own reasoning is wrong. Always on: a simulator that goes
/// on after a broken invariant gives answers nobody can trust.
#define FT_CHECK(condition, ...)                                                                    \
  do {                                                                                              \
    if (!(condition)) [[unlikely]]                                                                  \
      ::foretoken::detail::check_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

/// FT_CHECK for audits that cost more than a few instructions; compiled in where FORETOKEN_AUDIT is defined.
#ifdef FORETOKEN_AUDIT
#define FT_DCHECK(condition, ...) FT_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#else
#define FT_DCHECK(condition, ...) \
  do {                            \
  } while (false)
#endif
