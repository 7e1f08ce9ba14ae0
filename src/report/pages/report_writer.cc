#include "thimble/report/pages/report_writer.h"

#include <fmt/format.h>

#include "thimble/base/atomic_file.h"
#include "thimble/report/pages/comparison_page.h"
#include "thimble/report/pages/run_record.h"

namespace thimble {
namespace {

// A report that cannot be written is never bad input.
Result<void> AsFailure(const Result<void>& written) {
  if (written.ok()) return {};
  return Failed(written.error().message);
}

Result<void> WriteFiles(const std::string& page_path, const std::string& page,
                        const std::string& plots_folder, const NamedFiles& plots) {
  THIMBLE_TRY(AsFailure(WriteFileAtomically(page_path, page)));
  if (plots_folder.empty()) return {};
  THIMBLE_TRY(AsFailure(MakeFolder(plots_folder)));
  for (const auto& [name, content] : plots) {
    THIMBLE_TRY(AsFailure(WriteFileAtomically(plots_folder + "/" + name, content)));
  }
  return {};
}

std::string Lament(const Result<void>& written) { return "no report: " + written.error().message; }

}  // namespace

Result<void> WriteReport(const std::string& run_folder, const std::string& page_path,
                         const std::string& plots_folder, const OpRegistry& ops,
                         bool with_frontier) {
  THIMBLE_ASSIGN_OR_RETURN(RunRecord run, ReadRunFolder(run_folder));
  run.savings = FindRunSavings(run, ops);
  if (with_frontier) run.frontier = FindRunFrontier(run, ops);
  return WriteFiles(page_path, ReportPage(run), plots_folder, ReportPlots(run));
}

Result<void> WriteComparison(const std::vector<std::string>& run_folders,
                             const std::string& page_path, const std::string& plots_folder) {
  if (run_folders.size() > kMostCompared) {
    return BadInput(
        fmt::format("{} runs: at most {} can be compared", run_folders.size(), kMostCompared));
  }
  std::vector<RunRecord> runs;
  for (const std::string& folder : run_folders) {
    THIMBLE_ASSIGN_OR_RETURN(runs.emplace_back(), ReadRunFolder(folder));
  }
  return WriteFiles(page_path, ComparisonPage(runs), plots_folder, ComparisonPlots(runs));
}

DrawReport DrawReportHere(const OpRegistry& ops) {
  return [&ops](const std::string& run_folder) {
    return WriteReport(run_folder, ReportPath(run_folder), PlotsFolder(run_folder), ops);
  };
}

void ReportWriter::OnStart(const TrainingProgram& program, const std::string& run_folder) {
  run_folder_ = run_folder;
  shown_.OnStart(program, run_folder);
}

void ReportWriter::OnEpoch(const EpochReport& report) {
  shown_.OnEpoch(report);
  if (every_epochs_ == 0 || report.epoch % every_epochs_ != 0) return;
  if (const auto written = draw_(run_folder_); !written.ok()) shown_.OnMessage(Lament(written));
}

void ReportWriter::OnFinish(const TrainSummary& summary) {
  shown_.OnFinish(summary);
  const auto written = draw_(run_folder_);
  if (!told_)
    shown_.OnMessage(written.ok() ? "report: " + ReportPath(run_folder_) : Lament(written));
  told_ = true;
}

}  // namespace thimble
