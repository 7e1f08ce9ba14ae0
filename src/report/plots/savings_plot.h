// The bytes that each technique saves, as bars.
#pragma once

#include <cstdint>

#include "thimble/report/plots/svg.h"
#include "thimble/train/planning/savings.h"

namespace thimble {

// Rows: the arena without any technique, with each default technique alone, with all defaults, with
// each optional technique, and of this run. The saved bytes are drawn after the needed ones.
Svg SavingsPlot(const Savings& savings, int64_t arena_bytes, double width);

}  // namespace thimble
