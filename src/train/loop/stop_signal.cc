#include "thimble/train/loop/stop_signal.h"

#include <fmt/format.h>

namespace thimble {
namespace {

volatile sig_atomic_t stop_signal = 0;

void Handle(int number) {
  if (stop_signal == 0) stop_signal = number;
  signal(number, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal() {
  stop_signal = 0;
  struct sigaction action {};
  action.sa_handler = &Handle;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignal::number() const { return stop_signal; }

std::string SignalName(int number) {
  if (number == SIGTERM) return "SIGTERM";
  if (number == SIGINT) return "SIGINT";
  if (number == SIGHUP) return "SIGHUP";
  return fmt::format("signal {}", number);
}

}  // namespace thimble
