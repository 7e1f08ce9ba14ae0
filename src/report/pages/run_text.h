// A run in words and numbers, as both the report and the comparison have them.
#pragma once

#include <optional>
#include <string>

#include "thimble/report/pages/run_record.h"

namespace thimble {

// The last part of a folder's path, which is what people call a run.
std::string RunName(const std::string& folder);

// "batch 100", "batch 100 in parts of 10".
std::string BatchText(const TrainConfig& config);

// "wrn-28-2 on cifar10, batch 100, cuda".
std::string WhatRuns(const RunRecord& run);

// One sentence or two: memory against the plain plan, planned and measured, accuracy and speed; of
// a run that goes on, how far it is.
std::string ResultText(const RunRecord& run);

// Steps the run has done, as far as its files say.
int64_t StepsDone(const RunRecord& run);

// The newest accuracy on the test set, from 0 to 1; none yet for a run that was not evaluated.
std::optional<double> TestAccuracy(const RunRecord& run);

// "1.54x": how many times the plain plan is the arena.
std::string PlainRatio(const TrainSummary& summary);

// "11.1 images/s", "39,684 images/s".
std::string RateText(const TrainSummary& summary);

// "12.34 %", from a share.
std::string Percent(double share);
// "1 h 02 min", "3 min 20 s", "12.5 s".
std::string DurationText(double seconds);

}  // namespace thimble
