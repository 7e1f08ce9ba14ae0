// Runs a benchmark program as a user would. The tests check that it works, not how fast it is.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/process.h"

namespace thimble {

inline ProcessResult RunBenchProgram(const std::string& program,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunProcess(command);
}

}  // namespace thimble
