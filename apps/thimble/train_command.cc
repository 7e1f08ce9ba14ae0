#include <memory>

#include "apps/thimble/command.h"
#include "thimble/base/child_process.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/console_progress.h"
#include "thimble/report/pages/report_writer.h"
#include "thimble/train/loop/trainer.h"

namespace thimble {
namespace {

constexpr std::string_view kExamples =
    "Examples:\n"
    "  thimble train --model wrn-16-2 --data shapes --batch 50 --steps 200\n"
    "  thimble train --model wrn-28-2 --data cifar10:DIR --epochs 200 --out runs/first\n"
    "  thimble train --model net.toml --batch 64 --recompute optimal --budget 64MB\n";

struct TrainFlags {
  ConfigFlags config;
  bool json = false;
  bool no_report = false;
};

// Draws in a separate process, so that drawing does not raise this one's peak memory; in this
// process if no other can be started (no /proc, no descriptors left).
Result<void> DrawReportElsewhere(const std::string& run_folder) {
  const auto drawn = RunChild("/proc/self/exe", {"report", "--", run_folder});
  if (!drawn.ok()) return DrawReportHere(BuiltinOps())(run_folder);
  if (drawn->err.empty() && !drawn->out.empty()) return {};  // it printed the page's path
  std::string reason = drawn->err.substr(0, drawn->err.find('\n'));
  if (constexpr std::string_view kName = "thimble: "; reason.starts_with(kName)) {
    reason.erase(0, kName.size());
  }
  return Failed(reason.empty() ? "the process that writes it was terminated, perhaps for lack of "
                                 "memory; thimble report writes it later"
                               : reason);
}

int RunTrain(const TrainFlags& flags) {
  const auto config = flags.config.Resolve();
  if (!config.ok()) return Report(config.error());
  if (!flags.config.HasFileOr({"model", "data", "resume"})) {
    const int code =
        Report(BadInput("train: expected at least one of --model, --data and --config"));
    WriteMessage(fmt::format("{}All options: thimble train --help\n", kExamples));
    return code;
  }
  ConsoleProgress progress;
  ReportWriter writer(progress, config->report_every, DrawReportElsewhere);
  TrainObserver& observer = flags.no_report ? static_cast<TrainObserver&>(progress) : writer;
  const auto summary = Train(*config, BuiltinOps(), observer);
  if (!summary.ok()) return Report(summary.error());
  Print("{}", flags.json ? summary->json : SummaryText(*summary));
  // The exit code by which shells report a program that was ended by a signal.
  return summary->finished ? 0 : 128 + summary->stop_signal;
}

}  // namespace

void AddTrainCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("train", "train a model");
  auto flags = std::make_shared<TrainFlags>();
  flags->config.AddTo(*command);
  command->add_flag("--json", flags->json, "print the summary as JSON on standard output");
  command->add_flag("--no-report", flags->no_report,
                    "do not write report.html and plots; thimble report writes them later");
  command->footer(std::string(kExamples));
  command->callback([flags, exit_code] { *exit_code = RunTrain(*flags); });
}

}  // namespace thimble
