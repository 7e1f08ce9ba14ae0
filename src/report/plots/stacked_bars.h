// Horizontal bars, one row each, stacked by category.
#pragma once

#include <string>
#include <vector>

#include "thimble/plan/memory/accounting.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

struct BarRow {
  std::string name;
  CategoryBytes bytes{};
  size_t gap_bytes = 0;
};

// Names on the left, totals at the ends; titles give the bytes of each part.
Svg StackedBars(const std::vector<BarRow>& rows, double width, const std::string& label);

}  // namespace thimble
