// ConsoleProgress: shows a run on standard error: a bar on a terminal, plain lines elsewhere.
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
  void Line(const std::string& line);  // on a line of its own, in place of the bar

  bool terminal_;
  std::chrono::steady_clock::time_point last_shown_;
  std::chrono::steady_clock::time_point started_;
  int64_t first_step_ = -1;  // of this session; a resumed run starts later
};

// The bar of a run in one line of at most `width` columns, at least 1: what matters least is left
// out where it does not fit.
std::string ProgressBar(const Progress& progress, double seconds_left, size_t width);

// The table a run ends with: memory planned and measured, accuracy, speed, where the files are.
std::string SummaryText(const TrainSummary& summary);

}  // namespace thimble
