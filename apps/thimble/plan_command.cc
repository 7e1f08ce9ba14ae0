#include <memory>

#include "apps/thimble/command.h"
#include "thimble/data/image_dataset.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/plan_answer.h"
#include "thimble/report/plan_text.h"
#include "thimble/report/text_style.h"
#include "thimble/train/savings.h"
#include "thimble/train/training_program.h"

namespace thimble {
namespace {

// Nodes of a training graph for which the smallest arenas are found in a second or so; wrn-28-2 has
// 252, and up to twice as many where values are rebuilt.
constexpr size_t kQuicklySearched = 800;

struct PlanFlags {
  ConfigFlags config;
  bool layers = false;
  bool json = false;
  bool csv = false;
};

Result<PlanAnswer> Answer(const TrainConfig& config, const TrainingProgram& planned,
                          const OpRegistry& ops) {
  PlanAnswer answer{.model = config.model,
                    .batch = planned.batch,
                    .budget_bytes = config.budget_bytes,
                    .record = {}};
  THIMBLE_ASSIGN_OR_RETURN(answer.savings, FindSavings(config, planned.model, ops));
  if (planned.main_plan().graph.nodes.size() <= kQuicklySearched) {
    THIMBLE_ASSIGN_OR_RETURN(answer.smallest, FindSmallestArenas(config, planned.model, ops));
  }
  answer.plain_arena_bytes = answer.savings->plain_arena_bytes;
  answer.record = RecordOf(planned, ops, answer.plain_arena_bytes);
  if (!answer.fits()) {
    THIMBLE_ASSIGN_OR_RETURN(answer.largest_batch, LargestBatchWithin(config, planned.model, ops));
  }
  return answer;
}

Result<int> RunPlan(const PlanFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(const TrainConfig config, flags.config.Resolve());
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const PlannedData data, DescribeData(config));
  const OpRegistry& ops = BuiltinOps();
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, data.images, data.counts, ops));
  THIMBLE_ASSIGN_OR_RETURN(PlanAnswer answer, Answer(config, planned, ops));
  answer.with_layers = flags.layers;
  Print("{}", flags.json  ? ToJson(answer)
              : flags.csv ? ToCsv(answer)
                          : PlanText(answer, StyleOfOutput()));
  THIMBLE_TRY(CheckBudget(planned.program, config.budget_bytes));
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("plan", "what a training would need; allocates nothing of it");
  auto flags = std::make_shared<PlanFlags>();
  flags->config.AddTo(*command);
  command->add_flag("--layers", flags->layers, "a row per layer");
  CLI::Option* json = command->add_flag("--json", flags->json, "print one JSON object");
  command
      ->add_flag("--csv", flags->csv,
                 "print categories, or with --layers layers, as comma-separated values")
      ->excludes(json);
  command->callback([flags, exit_code] {
    const auto result = RunPlan(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
