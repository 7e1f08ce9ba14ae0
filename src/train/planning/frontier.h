// Frontier: what training costs at every size of memory, from the plain plan down to the smallest
// arena that is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/plan_sizer.h"

namespace thimble {

struct FrontierPoint {
  int64_t arena_bytes = 0;
  double step_seconds = 0;  // as predicted; 0: unknown
  int64_t step_flops = 0;
  double lost_points = 0;      // of accuracy, as expected (LeverStep)
  std::string exactness = {};  // "same-bits", "equal", "lossy"
  std::string options = {};    // what a budget of arena_bytes chooses; empty: nothing
};

// The configuration itself, then what budgets choose, each a fraction of the one before. No later
// point is worse than another in bytes, time and exactness at once, so that with less memory a step
// takes longer or results are less exact. The configuration's own budget is ignored.
// Requires 0 < fraction < 1.
Result<std::vector<FrontierPoint>> FindFrontier(const TrainConfig& config, const PlanSizer& sizer,
                                                double fraction = 0.7);

}  // namespace thimble
