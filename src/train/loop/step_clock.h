// StepClock: how fast a run's steps are.
#pragma once

#include <chrono>
#include <cstdint>

namespace thimble {

class StepClock {
 public:
  // A step begins while none is under way; others begin where the one before ends.
  void Begin() { started_ = Clock::now(); }
  // The oldest step has ended. Audited ones take longer and do not count.
  void End(int64_t samples, bool audited) {
    const Clock::time_point now = Clock::now();
    if (!audited) {
      seconds_ += std::chrono::duration<double>(now - started_).count();
      samples_ += samples;
    }
    started_ = now;
  }
  // 0 where no step counted.
  double samples_per_second() const {
    return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point started_;
  double seconds_ = 0;
  int64_t samples_ = 0;
};

}  // namespace thimble
