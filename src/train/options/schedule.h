// Learning-rate schedules: the rate as a function of the step, so that any step can be repeated.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

struct Schedule {
  enum class Kind { kConstant, kCosine, kSteps };
  Kind kind = Kind::kConstant;
  std::vector<double> epochs;  // kSteps: where the rate is multiplied by `factor`
  double factor = 1;
};

// "constant", "cosine", "steps:60,120,160:0.2".
Result<Schedule> ParseSchedule(std::string_view text);

struct ScheduleSpan {
  int64_t num_steps = 0;  // steps of the whole run
  int64_t steps_per_epoch = 1;
  int64_t warmup_steps = 0;
};

// The rate of a step in [0, num_steps). During warm-up it rises linearly and reaches the base rate
// after `warmup_steps` steps; cosine falls from there to 0 at the end of the run.
double LearningRate(const Schedule& schedule, const ScheduleSpan& span, double base, int64_t step);

}  // namespace thimble
