// The page of one run, and its plots as files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "thimble/report/pages/run_record.h"
#include "thimble/report/plots/curve_plot.h"

namespace thimble {

// Widths that plots are drawn for. For phones they are drawn again, since shrunk text would be
// unreadable.
inline constexpr double kWidePlot = 830;
inline constexpr double kNarrowPlot = 344;
inline constexpr double kHalfPlot = 398;  // two in a row; stacked on a phone

// The whole page.
std::string ReportPage(const RunRecord& run);

// Name ("memory.svg") and content of each plot.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;
NamedFiles ReportPlots(const RunRecord& run);

}  // namespace thimble
