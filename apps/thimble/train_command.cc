#include <fmt/format.h>

#include <memory>

#include "apps/thimble/command.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/console_progress.h"
#include "thimble/report/pages/report_writer.h"
#include "thimble/train/trainer.h"

namespace thimble {
namespace {

struct TrainFlags {
  ConfigFlags config;
  bool json = false;
};

int RunTrain(const TrainFlags& flags) {
  const auto config = flags.config.Resolve();
  if (!config.ok()) return Report(config.error());
  ConsoleProgress progress;
  ReportWriter writer(progress, config->report_every, BuiltinOps());
  const auto summary = Train(*config, BuiltinOps(), writer);
  if (!summary.ok()) return Report(summary.error());
  fmt::print("{}", flags.json ? summary->json : SummaryText(*summary));
  // As a shell reports a program that a signal ended.
  return summary->finished ? 0 : 128 + summary->stop_signal;
}

}  // namespace

void AddTrainCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("train", "train a model");
  auto flags = std::make_shared<TrainFlags>();
  flags->config.AddTo(*command);
  command->add_flag("--json", flags->json, "print the summary as JSON on standard output");
  command->callback([flags, exit_code] { *exit_code = RunTrain(*flags); });
}

}  // namespace thimble
