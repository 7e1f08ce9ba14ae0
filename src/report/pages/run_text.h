// Texts about a run, shared by the report and the comparison.
#pragma once

#include <optional>
#include <string>

#include "thimble/report/pages/run_record.h"

namespace thimble {

// The last part of a folder's path.
std::string RunName(const std::string& folder);

// "batch 100", "batch 100 in parts of 10".
std::string BatchText(const TrainConfig& config);

// "wrn-28-2 on cifar10, batch 100, cuda".
std::string WhatRuns(const RunRecord& run);

// A few sentences: memory compared with the plain plan, planned and measured, accuracy and speed;
// for a run without a summary, how far it is.
std::string ResultText(const RunRecord& run);

// Steps that the run has done according to its files.
int64_t StepsDone(const RunRecord& run);

// The latest accuracy on the test set, from 0 to 1; none if the run was not evaluated yet.
std::optional<double> TestAccuracy(const RunRecord& run);

// "1.54x": the plain plan's arena divided by this one.
std::string PlainRatio(const TrainSummary& summary);

// "11.1 images/s", "39,684 images/s".
std::string RateText(const TrainSummary& summary);

// "12.34 %", from a share.
std::string Percent(double share);
// "1 h 02 min", "3 min 20 s", "12.5 s".
std::string DurationText(double seconds);

}  // namespace thimble
