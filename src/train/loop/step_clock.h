// StepClock: measures the throughput of a run's steps.
#pragma once

#include <chrono>
#include <cstdint>

namespace thimble {

class StepClock {
 public:
  // Call when a step starts and none is in flight; other steps start when the previous one ends.
  void Begin() { started_ = Clock::now(); }
  // The next `steps` that end do not count: those in flight while a plan was prepared.
  void Skip(int64_t steps) { skipped_ = steps; }
  // Call when the oldest step has ended.
  void End(int64_t samples) {
    const Clock::time_point now = Clock::now();
    if (skipped_ > 0) {
      --skipped_;
    } else {
      seconds_ += std::chrono::duration<double>(now - started_).count();
      samples_ += samples;
    }
    started_ = now;
  }
  // 0 if no step counted.
  double samples_per_second() const {
    return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point started_;
  double seconds_ = 0;
  int64_t samples_ = 0;
  int64_t skipped_ = 0;
};

}  // namespace thimble
