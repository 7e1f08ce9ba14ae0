// Process: runs a program without a shell and collects its output and exit code. For end-to-end
// tests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace thimble {

struct ProcessLimits {
  // A program that hangs is killed after this time. Generous: sanitizer builds on a busy machine
  // must pass, too.
  std::chrono::seconds timeout{300};
  // Files cannot grow beyond this: writes fail as on a full disk. 0: no limit.
  int64_t max_file_bytes = 0;
  // The process cannot map more addresses than this (ulimit -v). 0: no limit.
  int64_t max_address_bytes = 0;
  // "NAME=value", in addition to this process's environment.
  std::vector<std::string> environment = {};
  // Standard input; a pipe must have a writer.
  std::string input = "/dev/null";
};

struct ProcessResult {
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out;
  std::string err;
  double cpu_seconds = 0;  // of all its threads; independent of other programs
  int64_t peak_bytes = 0;  // largest resident set
};

class Process {
 public:
  // Starts `command`, whose first word is the path of the program.
  explicit Process(const std::vector<std::string>& command, const ProcessLimits& limits = {});
  // Kills the program if it was not waited for.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int number) const { ::kill(pid_, number); }
  // Reads available output; false once the program has closed its outputs.
  bool Poll(std::chrono::milliseconds patience);
  const std::string& out() const { return result_.out; }
  const std::string& err() const { return result_.err; }
  // Waits for the end.
  ProcessResult Wait();

 private:
  using Clock = std::chrono::steady_clock;

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Clock::time_point started_;
  std::chrono::seconds timeout_;
  ProcessResult result_;
};

// Start and Wait in one.
ProcessResult RunProcess(const std::vector<std::string>& command, const ProcessLimits& limits = {});

}  // namespace thimble
