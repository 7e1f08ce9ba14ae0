// What each technique took off the arena, one after the other.
#pragma once

#include "thimble/plan/program_record.h"
#include "thimble/report/svg.h"

namespace thimble {

// A waterfall from the arena without any technique down to the arena.
Svg SavingsPlot(const PlanRecord& plan, double width);

}  // namespace thimble
