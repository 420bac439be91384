#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace foretoken {

/// A fault in what the user gave: a file, a flag, a value. `main` prints it on one line and exits with 3
/// (with 2 where it is thrown as UsageError).
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault in the command line itself; exit code 2.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

/// The simulated system cannot exist: the model does not fit, a request is longer than the context; exit
/// code 4.
class InfeasibleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device or the operating system refused: call, place and code are in the text; exit code 6.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `place: expected E, found F`; `place` is `file:line` or `file: /json/pointer`.
[[nodiscard]] inline InputError input_error(std::string_view place, std::string_view expected,
                                            std::string_view found) {
  std::string text(place);
  text.append(": expected ").append(expected).append(", found ").append(found);
  return InputError(text);
}

}  // namespace foretoken
