// Memory over one step: the bytes of each category at each step of the plan, stacked.
#pragma once

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

// The peak is marked and the phases are below; titles give the bytes of each step. Plans with very
// many steps are drawn in fewer columns; each shows the step with the most bytes.
Svg MemoryPlot(const PlanRecord& plan, double width);

}  // namespace thimble
