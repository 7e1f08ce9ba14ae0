#include <fmt/format.h>

#include <memory>

#include "apps/thimble/command.h"
#include "thimble/data/image_dataset.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/plan_json.h"
#include "thimble/report/plan_text.h"
#include "thimble/train/training_program.h"

namespace thimble {
namespace {

struct PlanFlags {
  ConfigFlags config;
  bool json = false;
};

Result<int> RunPlan(const PlanFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainConfig config, flags.config.Resolve());
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const PlannedData data, DescribeData(config));
  const OpRegistry& ops = BuiltinOps();
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, data.images, data.counts, ops));
  THIMBLE_ASSIGN_OR_RETURN(const int64_t plain_arena_bytes,
                           PlainArenaBytes(config, data.images, data.counts, ops));
  if (flags.json) {
    fmt::print("{}", PlanSummaryJson(
                         planned.program, ops,
                         {config.model, config.batch, config.budget_bytes, plain_arena_bytes}));
  } else {
    fmt::print("{}", PlanText(planned.program, ops,
                              fmt::format("{}, batch {}", config.model, config.batch),
                              config.budget_bytes));
  }
  THIMBLE_TRY(CheckBudget(planned.program, config.budget_bytes));
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("plan", "what a training would need; allocates nothing of it");
  auto flags = std::make_shared<PlanFlags>();
  flags->config.AddTo(*command);
  command->add_flag("--json", flags->json, "print one JSON object");
  command->callback([flags, exit_code] {
    const auto result = RunPlan(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
