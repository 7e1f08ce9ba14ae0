// Learning-rate schedules: the rate as a function of the step, so that any step can be repeated.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

struct Schedule {
  enum class Kind { kConstant, kCosine, kSteps, kInverseSqrt };
  Kind kind = Kind::kConstant;
  std::vector<double> epochs;  // kSteps: where the rate is multiplied by `factor`
  double factor = 1;
  double start = 0;  // kInverseSqrt: where the warm-up begins
};

// "constant", "cosine", "steps:60,120,160:0.2", "inverse-sqrt", "inverse-sqrt:1e-7".
Result<Schedule> ParseSchedule(std::string_view text);

struct ScheduleSpan {
  int64_t num_steps = 0;  // steps of the whole run
  int64_t steps_per_epoch = 1;
  int64_t warmup_steps = 0;

  // The epoch, from 1, that a step number belongs to, counted from 1; the last one may be shorter.
  int64_t EpochOf(int64_t step) const { return (step + steps_per_epoch - 1) / steps_per_epoch; }
  bool EndsEpoch(int64_t step) const { return step % steps_per_epoch == 0 || step >= num_steps; }
};

// The rate of a step in [0, num_steps). During warm-up it rises linearly from `start` and reaches
// the base rate in the step number `warmup_steps`, counted from 1. From there cosine falls to 0 at
// the end of the run, inverse-sqrt as base * sqrt(warmup_steps / step number) (without warm-up:
// from the first step on), whatever the length of the run.
double LearningRate(const Schedule& schedule, const ScheduleSpan& span, double base, int64_t step);

}  // namespace thimble
