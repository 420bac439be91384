#pragma once
#include <cstdint>
#include <span>

#include "sim/core/time.hpp"

namespace foretoken {

/// Position of a request in its source, from 0. Unique in a run, never reused.
enum class RequestId : std::uint32_t {};
/// Index of a request while it is alive (waiting, resident or swapped); dense and reused, so that columns can
/// be indexed by it.
enum class Handle : std::uint32_t {};
/// Row of a resident sequence; dense and reused.
enum class Slot : std::uint32_t {};

inline constexpr Handle kNoHandle{0xffffffffu};
inline constexpr Slot kNoSlot{0xffffffffu};

/// A slot or handle as an index into a column.
constexpr std::size_t index(Slot s) { return static_cast<std::size_t>(s); }
constexpr std::size_t index(Handle h) { return static_cast<std::size_t>(h); }

/// What was asked, as far as a policy may know it: the true length of the answer is not here.
struct Request {
  RequestId id{};
  Time arrival{};
  std::int32_t prompt_tokens = 1;
  /// Upper bound on the answer. 0 asks for no token at all (an embedding). Negative: the client gave none,
  /// and the scheduler uses what the context leaves.
  std::int32_t max_new_tokens = -1;
  /// A prediction of the answer's length, with whatever error the scenario states; 0 when there is none.
  std::int32_t predicted_output_tokens = 0;
  /// Lower is more urgent.
  std::int32_t priority = 0;
  /// Indices into the names that the source carries.
  std::uint16_t slo_class = 0;
  std::uint16_t tenant = 0;
  std::uint16_t source = 0;
  /// Identity of the prompt's content in blocks of `hash_block_tokens`, first block first; equal hashes at
  /// equal positions after equal prefixes are equal text. Empty: shares with nobody. The view lives until the
  /// source's next call.
  std::span<const std::uint64_t> prefix_hashes;
  std::int32_t hash_block_tokens = 0;
};

/// A request together with what only the world knows. The engine keeps the truth from the scheduler.
struct Offer {
  Request request;
  /// Length of the answer; 0 is an embedding, 1 a classification.
  std::int32_t output_tokens = 1;
  /// The client leaves when no token was delivered this long after the arrival.
  Duration patience = kForever;
  /// The client leaves this long after the arrival in any case.
  Duration cancel_after = kForever;
};

/// How a request's life ended.
enum class Ending : std::uint8_t { finished, cancelled, rejected };

/// Why the door refused a request.
enum class Refusal : std::uint8_t { none, exceeds_context, never_fits };

/// Where requests come from. Open-loop sources know their arrivals; closed loops and sessions wait to be told
/// of endings.
class Source {
 public:
  virtual ~Source() = default;
  /// Time of the next arrival known so far; kNever when none is (yet).
  virtual Time next_time() = 0;
  /// The next arrival. Called only when `next_time` is not kNever; times never decrease.
  virtual Offer pop() = 0;
  /// A request's life ended at `t`, in whatever way. Later arrivals may depend on it, none before `t`.
  virtual void on_end(RequestId id, Time t, Ending how) = 0;
};

}  // namespace foretoken
