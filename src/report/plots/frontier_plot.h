// Time of a step over memory: what each size of the arena costs.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/report/plots/svg.h"
#include "thimble/train/planning/frontier.h"

namespace thimble {

// A dot for each point, with a logarithmic axis of bytes and a colour for each class of exactness;
// titles give the options. Arithmetic takes the place of times that are unknown. A dashed line
// shows the arena of a run, if `run_bytes` is not 0. Requires at least one point.
Svg FrontierPlot(const std::vector<FrontierPoint>& points, double width, int64_t run_bytes = 0);

}  // namespace thimble
