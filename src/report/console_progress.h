// ConsoleProgress: shows a run on standard error, as a bar on a terminal, as plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "thimble/train/loop/trainer.h"

namespace thimble {

class ConsoleProgress final : public TrainObserver {
 public:
  ConsoleProgress();

  void OnStart(const TrainingProgram& program, const std::string& run_folder) override;
  void OnStep(const Progress& progress) override;
  void OnEpoch(const EpochReport& report) override;
  void OnMessage(const std::string& line) override;

 private:
  void Line(const std::string& line);  // replaces the bar

  bool terminal_;
  std::chrono::steady_clock::time_point last_shown_;
  std::chrono::steady_clock::time_point started_;
  int64_t first_step_ = -1;  // of this session; a resumed run starts later
};

// The status of a run in one line of at most `width` columns (at least 1). The least important
// parts are left out if they do not fit.
std::string ProgressBar(const Progress& progress, double seconds_left, size_t width);

// The summary printed at the end of a run: memory planned and measured, accuracy, speed, run
// folder.
std::string SummaryText(const TrainSummary& summary);

}  // namespace thimble
