#pragma once
#include <string>
#include <vector>

namespace foretoken {

/// Names of everything in the scratch folder but what the runner itself writes there.
std::vector<std::string> scratch_listing();
/// Runs a command that must fail: the code, one line of error that has all `parts`, nothing on stdout, no
/// file more or less. `tail` follows the arguments in the shell, `before` comes before the program.
void refuses(const std::string& arguments, int code, const std::vector<std::string>& parts,
             const std::string& tail = "", const std::string& before = "");

}  // namespace foretoken
