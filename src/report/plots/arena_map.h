// The map of the arena: addresses from the bottom up, steps from left to right. Every holding is a
// rectangle in the colour of its category.
#pragma once

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

// Titles give value, layer, shape, bytes, lifetime and offset. Neighbours with the same category
// and lifetime that are too thin to be seen are drawn as one.
Svg ArenaMap(const PlanRecord& plan, double width);

}  // namespace thimble
