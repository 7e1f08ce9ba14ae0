// Runs side by side: memory, time, accuracy, and the settings in which they differ.
#pragma once

#include <string>
#include <vector>

#include "thimble/report/pages/report_page.h"
#include "thimble/report/pages/run_record.h"

namespace thimble {

// More runs could not be told apart.
inline constexpr size_t kMostCompared = 12;

// The whole page, for two to kMostCompared runs.
std::string ComparisonPage(const std::vector<RunRecord>& runs);
NamedFiles ComparisonPlots(const std::vector<RunRecord>& runs);

// Names of the runs: the last part of their folders, or the whole paths if two would have the same
// name.
std::vector<std::string> NamesOf(const std::vector<RunRecord>& runs);

}  // namespace thimble
