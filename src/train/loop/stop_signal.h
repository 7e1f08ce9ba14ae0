// Graceful stop: on SIGTERM, SIGINT or SIGHUP (terminal closed) the loop stops after the current
// step. A second signal of the same kind ends the program at once. Signals that were ignored when
// the program started (nohup ignores SIGHUP) stay ignored.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace thimble {

class StopSignal {
 public:
  StopSignal();   // installs the handlers; at most one object at a time
  ~StopSignal();  // restores the previous handlers
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const { return number() != 0; }
  // The number of the first signal received; 0 if there was none.
  int number() const;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_;
};

// "SIGTERM"; "signal 10" for signals other than the three above.
std::string SignalName(int number);

}  // namespace thimble
