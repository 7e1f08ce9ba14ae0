// A polite end: SIGTERM and SIGINT ask the loop to stop after the current step. A second one of the
// same kind ends the program at once.
#pragma once

namespace thimble {

class StopSignal {
 public:
  StopSignal();   // takes over the signals; at most one object at a time
  ~StopSignal();  // gives them back
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
};

}  // namespace thimble
