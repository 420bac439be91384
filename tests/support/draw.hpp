#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/core/random.hpp"

namespace foretoken::laws {

/// A law does not hold; the text says which, where and with which values.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws Broken with the condition, its place and values.
template <class... Values>
[[noreturn]] void broken(const char* file, int line, const char* condition, const Values&... values) {
  std::ostringstream text;
  text << file << ':' << line << ": " << condition << " does not hold";
  ((text << ' ' << values), ...);
  throw Broken(text.str());
}

/// States what a law demands; the values follow the condition into the message.
#define LAW(condition, ...)                                                                                 \
  do {                                                                                                      \
    if (!(condition)) ::foretoken::laws::broken(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

/// Where a property test gets its choices from: a pure function of the seed, so that one number brings a
/// failure back.
class Draw {
 public:
  /// `halvings`: how often the number of requests is halved, for shrinking.
  Draw(std::uint64_t seed, int halvings) : stream_(seed, 1), seed_(seed), halvings_(halvings) {}

  /// The seed itself, for streams of one's own.
  std::uint64_t seed() const { return seed_; }
  /// Uniform integer in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) { return stream_.integer(next_++, low, high); }
  /// The same as a 32-bit integer.
  std::int32_t small(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(between(low, high));
  }
  /// True with the given probability.
  bool chance(double probability) { return stream_.uniform(next_++) < probability; }
  /// One of the values, each equally likely.
  template <class Value>
  Value pick(std::initializer_list<Value> values) {
    return values.begin()[between(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  /// A number of requests: what shrinking halves.
  std::int32_t requests(std::int64_t low, std::int64_t high) {
    const std::int32_t drawn = small(low, high);
    return drawn >> halvings_ > 0 ? drawn >> halvings_ : 1;
  }
  /// Says what was drawn; printed with a failure.
  void note(const std::string& text);

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
  std::uint64_t seed_;
  int halvings_;
};

/// Runs the law over `count` seeds. A failure is shrunk by halving the requests, then fails the Catch test
/// with the seed and the notes; an abort or a hang prints them, too. FORETOKEN_SEED=n runs that seed alone,
/// in a child process where aborts are shrunk as well; FORETOKEN_SEEDS=n replaces the count.
void for_each_seed(int count, const std::function<void(Draw&)>& law);

/// How a child process that ran something ended.
enum class Fate { passed, broke, aborted, hung };
/// Runs `body` in a child process with standard error closed: for seeded faults that an internal check may
/// answer with an abort.
Fate fate_of(const std::function<void()>& body, unsigned seconds_max = 20);

/// Over drawn seeds: how many of `count` the law notices, by Broken, abort or hang, when a fault is seeded.
/// For tests that a law bites.
int times_noticed(int count, const std::function<void(Draw&)>& law);

}  // namespace foretoken::laws
