// Memory over one step: who owns how many bytes of the arena, as a stack of steps by category.
#pragma once

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

// With the peak marked and the phases below; titles give the bytes of each step. Plans of very many
// steps are drawn in as many columns as can be seen, each the fullest of its steps.
Svg MemoryPlot(const PlanRecord& plan, double width);

}  // namespace thimble
