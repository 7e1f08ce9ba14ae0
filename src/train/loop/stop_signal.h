// A polite end: SIGTERM, SIGINT and SIGHUP (the terminal is gone) ask the loop to stop after the
// current step. A second one of the same kind ends the program at once. A signal that was ignored
// when the program started, as nohup does with SIGHUP, stays ignored.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace thimble {

class StopSignal {
 public:
  StopSignal();   // takes over the signals; at most one object at a time
  ~StopSignal();  // gives them back
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const { return number() != 0; }
  // Of the first signal that came; 0 where none has.
  int number() const;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_;
};

// "SIGTERM"; "signal 10" for those that are not among the above.
std::string SignalName(int number);

}  // namespace thimble
