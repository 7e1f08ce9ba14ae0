// Writes reports of one run, finished or not, and of several runs.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/report/pages/report_page.h"
#include "thimble/train/loop/trainer.h"

namespace thimble {

// Default paths of a run's report.
inline std::string ReportPath(const std::string& run_folder) { return run_folder + "/report.html"; }
inline std::string PlotsFolder(const std::string& run_folder) { return run_folder + "/plots"; }

// Writes the report of a run folder: a page, and plots as SVG files in a folder that is created if
// missing. kBadInput if the run cannot be read, kFailed if the report cannot be written.
// `with_frontier`: also what other budgets would choose, which takes seconds.
Result<void> WriteReport(const std::string& run_folder, const std::string& page_path,
                         const std::string& plots_folder, const OpRegistry& ops,
                         bool with_frontier = false);

// The same for a comparison of several runs. With an empty `plots_folder` no plots are written.
Result<void> WriteComparison(const std::vector<std::string>& run_folders,
                             const std::string& page_path, const std::string& plots_folder);

// Writes the report of a run folder to its default paths, in this process or in another.
using DrawReport = std::function<Result<void>(const std::string& run_folder)>;
DrawReport DrawReportHere(const OpRegistry& ops);

// An observer that forwards all events to another one, and writes the run's report at the end and
// every `every_epochs` epochs (0: only at the end). If a report cannot be written, a message says
// so and the run continues.
class ReportWriter final : public TrainObserver {
 public:
  ReportWriter(TrainObserver& shown, int64_t every_epochs, DrawReport draw)
      : shown_(shown), every_epochs_(every_epochs), draw_(std::move(draw)) {}
  // Draws in this process.
  ReportWriter(TrainObserver& shown, int64_t every_epochs, const OpRegistry& ops)
      : ReportWriter(shown, every_epochs, DrawReportHere(ops)) {}

  void OnStart(const TrainingProgram& program, const std::string& run_folder) override;
  void OnStep(const Progress& progress) override { shown_.OnStep(progress); }
  void OnEpoch(const EpochReport& report) override;
  void OnMessage(const std::string& line) override { shown_.OnMessage(line); }
  void OnFinish(const TrainSummary& summary) override;

 private:
  TrainObserver& shown_;
  int64_t every_epochs_;
  DrawReport draw_;
  std::string run_folder_;
  bool told_ =
      false;  // the last report's message was sent; a run may end twice (publish_summary.h)
};

}  // namespace thimble
