// The map of the arena: addresses from the bottom up, steps from left to right, every holding a
// rectangle in the colour of its category.
#pragma once

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

// Titles give value, layer, shape, bytes, life and offset. Neighbours of one category and one life
// that are too thin to be seen are drawn as one.
Svg ArenaMap(const PlanRecord& plan, double width);

}  // namespace thimble
