#include "thimble/train/stop_signal.h"

#include <signal.h>

namespace thimble {
namespace {

volatile sig_atomic_t stop_requested = 0;

void Handle(int signal_number) {
  stop_requested = 1;
  signal(signal_number, SIG_DFL);
}

}  // namespace

StopSignal::StopSignal() {
  stop_requested = 0;
  struct sigaction action {};
  action.sa_handler = &Handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

StopSignal::~StopSignal() {
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
}

bool StopSignal::requested() const { return stop_requested != 0; }

}  // namespace thimble
