#include "tests/support/draw.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tests/catch.hpp"

namespace foretoken::laws {
namespace {

constexpr unsigned kSecondsMax = 120;
constexpr int kHalvingsMax = 8;

// What runs now, ready for a signal handler, which may not allocate.
std::array<char, 8192> now_running{};

void tell(int signal) {
  const std::size_t length = std::strlen(now_running.data());
  if (write(STDERR_FILENO, now_running.data(), length) < 0) _exit(3);
  std::signal(signal, SIG_DFL);
  if (signal == SIGALRM) _exit(4);
  raise(signal);
}

void remember(std::uint64_t seed) {
  const std::string text = "\nrerun with FORETOKEN_SEED=" + std::to_string(seed) + "\n";
  now_running.fill(0);
  std::memcpy(now_running.data(), text.data(), text.size());
}

std::optional<std::string> attempt(std::uint64_t seed, int halvings, const std::function<void(Draw&)>& law) {
  remember(seed);
  alarm(kSecondsMax);
  Draw draw(seed, halvings);
  try {
    law(draw);
  } catch (const Broken& failure) {
    alarm(0);
    return std::string(failure.what()) + now_running.data();
  }
  alarm(0);
  return std::nullopt;
}

void report(std::uint64_t seed, int halvings, std::string text, const std::function<void(Draw&)>& law) {
  // The smallest run that still fails says most.
  for (int more = halvings + 1; more <= kHalvingsMax; ++more) {
    const auto smaller = attempt(seed, more, law);
    if (!smaller) continue;
    text = *smaller;
    halvings = more;
  }
  FAIL("after " << halvings << " halvings of the requests: " << text);
}

std::optional<std::uint64_t> number_from(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

void Draw::note(const std::string& text) {
  const std::size_t used = std::strlen(now_running.data());
  if (used + 2 >= now_running.size()) return;
  const std::size_t room = now_running.size() - used - 2;
  const std::size_t length = std::min(room, text.size());
  std::memcpy(now_running.data() + used, text.data(), length);
  now_running[used + length] = '\n';
  now_running[used + length + 1] = 0;
}

void for_each_seed(int count, const std::function<void(Draw&)>& law) {
  const auto old_abort = std::signal(SIGABRT, tell);
  const auto old_alarm = std::signal(SIGALRM, tell);
  if (const auto seed = number_from("FORETOKEN_SEED")) {
    int smallest = 0;
    for (int halvings = 1; halvings <= kHalvingsMax; ++halvings) {
      const Fate fate = fate_of([&] {
        Draw draw(*seed, halvings);
        law(draw);
      });
      if (fate != Fate::passed) smallest = halvings;
    }
    if (const auto failure = attempt(*seed, smallest, law)) report(*seed, smallest, *failure, law);
  } else {
    const std::uint64_t seeds = number_from("FORETOKEN_SEEDS").value_or(static_cast<std::uint64_t>(count));
    for (std::uint64_t s = 1; s <= seeds; ++s)
      if (const auto failure = attempt(s, 0, law)) report(s, 0, *failure, law);
  }
  std::signal(SIGABRT, old_abort);
  std::signal(SIGALRM, old_alarm);
  SUCCEED();
}

Fate fate_of(const std::function<void()>& body, unsigned seconds_max) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    std::signal(SIGALRM, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    alarm(seconds_max);
    try {
      body();
    } catch (const Broken&) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? Fate::hung : Fate::aborted;
  return WEXITSTATUS(status) == 0 ? Fate::passed : Fate::broke;
}

int times_noticed(int count, const std::function<void(Draw&)>& law) {
  int noticed = 0;
  for (int seed = 1; seed <= count; ++seed) {
    const Fate fate = fate_of([&] {
      Draw draw(static_cast<std::uint64_t>(seed), 0);
      law(draw);
    });
    noticed += fate != Fate::passed;
  }
  return noticed;
}

}  // namespace foretoken::laws
