// Reports as files: of a run that ends, of one that goes on, of several.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/report/pages/report_page.h"
#include "thimble/train/loop/trainer.h"

namespace thimble {

// Where a report of a run goes where nothing else is said.
inline std::string ReportPath(const std::string& run_folder) { return run_folder + "/report.html"; }
inline std::string PlotsFolder(const std::string& run_folder) { return run_folder + "/plots"; }

// Makes the report of a run folder: a page, and plots as SVG files in a folder that is made where
// it is missing. kBadInput where the run cannot be read, kFailed where the report cannot be
// written.
Result<void> WriteReport(const std::string& run_folder, const std::string& page_path,
                         const std::string& plots_folder, const OpRegistry& ops);

// The same for several runs side by side. An empty `plots_folder` writes no plots.
Result<void> WriteComparison(const std::vector<std::string>& run_folders,
                             const std::string& page_path, const std::string& plots_folder);

// Makes the report of a run folder where it belongs, in this process or elsewhere.
using DrawReport = std::function<Result<void>(const std::string& run_folder)>;
DrawReport DrawReportHere(const OpRegistry& ops);

// An observer between a run and the one who shows it: passes everything on, and writes the run's
// report at its end and every so many epochs (0: only at the end). A report that cannot be written
// becomes a message; the run goes on.
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
  bool told_ = false;  // how the last report went; a run may end twice (publish_summary.h)
};

}  // namespace thimble
