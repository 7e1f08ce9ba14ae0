// What each technique takes off the arena, as bars.
#pragma once

#include <cstdint>

#include "thimble/report/plots/svg.h"
#include "thimble/train/planning/savings.h"

namespace thimble {

// A row for the arena without any technique, with each alone, with all that every plan has, with
// each that may be asked for, and for the run's own. What is saved hangs behind what is needed.
Svg SavingsPlot(const Savings& savings, int64_t arena_bytes, double width);

}  // namespace thimble
