#pragma once
#include <string>

namespace foretoken {

/// What a run of the program left.
struct ProgramResult {
  int code = 0;
  std::string out;
  std::string error;
};

/// Runs `foretoken ARGUMENTS` in the shell, in a folder of its own kind, with stdout and stderr apart; `tail`
/// follows the arguments in the shell
/// ("| head -1", "> /dev/full").
ProgramResult run_program(const std::string& arguments, const std::string& before = "",
                          const std::string& tail = "");

/// Folder for the files of these tests, made fresh once per process.
const std::string& scratch_folder();

}  // namespace foretoken
