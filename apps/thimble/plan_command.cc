#include <memory>
#include <optional>
#include <utility>

#include "apps/thimble/command.h"
#include "thimble/base/standard_streams.h"
#include "thimble/data/image_dataset.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/plan_answer.h"
#include "thimble/report/plan_text.h"
#include "thimble/report/text_style.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/planning/savings.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/step_time/op_times_file.h"

namespace thimble {
namespace {

struct PlanFlags {
  ConfigFlags config;
  bool layers = false;
  bool json = false;
  bool csv = false;
};

// `choice`: what the budget chose, if anything. It takes the place of the table of savings.
Result<PlanAnswer> Answer(const TrainConfig& config, const TrainingProgram& planned,
                          std::optional<BudgetChoice> choice, const ImageCounts& counts,
                          const OpRegistry& ops) {
  PlanAnswer answer{.model = config.model,
                    .batch = planned.batch,
                    .budget_bytes = config.budget_bytes,
                    .record = {}};
  const PlanSizer sizer(planned.model, counts, ops);
  answer.choice = std::move(choice);
  if (!answer.choice) {
    THIMBLE_ASSIGN_OR_RETURN(answer.savings, FindSavings(config, sizer));
  }
  if (!answer.choice && planned.main_plan().graph.nodes.size() <= kQuicklySearched) {
    THIMBLE_ASSIGN_OR_RETURN(answer.smallest, FindSmallestArenas(config, sizer));
  }
  answer.plain = IsPlain(config);
  THIMBLE_ASSIGN_OR_RETURN(answer.plain_arena_bytes, PlainArenaBytes(config, planned, counts, ops));
  answer.record = RecordOf(planned, ops, answer.plain_arena_bytes);
  if (!answer.fits()) {
    THIMBLE_ASSIGN_OR_RETURN(answer.advice, AdviseTraining(config, sizer));
  }
  return answer;
}

Result<int> RunPlan(const PlanFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(TrainConfig config, flags.config.Resolve());
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const PlannedData data, DescribeData(config));
  const std::string cut = CutMessage(config, data.counts);
  config = CutToData(std::move(config), data.counts);
  const OpRegistry& ops = BuiltinOps();
  THIMBLE_ASSIGN_OR_RETURN(const ImageClassifier model, FindModel(config.model, data.images));
  // If nothing fits, the answer shows what was asked for.
  const OpTimes times = LoadOpTimes(config);
  const auto choice = ChooseForBudget(config, PlanSizer(model, data.counts, ops, times));
  if (!choice.ok() && choice.error().kind != ErrorKind::kDoesNotFit) return choice.error();
  if (choice.ok()) config = choice->config;
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned,
                           MakeTrainingProgram(config, model, data.counts, ops));
  std::optional<BudgetChoice> chosen;
  if (choice.ok() && !choice->levers.empty()) chosen = *choice;
  THIMBLE_ASSIGN_OR_RETURN(PlanAnswer answer,
                           Answer(config, planned, std::move(chosen), data.counts, ops));
  answer.step_seconds = StepSeconds(planned.program, ops, times);
  answer.with_layers = flags.layers;
  Print("{}", flags.json  ? ToJson(answer)
              : flags.csv ? ToCsv(answer)
                          : PlanText(answer, StyleOfOutput()));
  if (!choice.ok()) return choice.error();
  std::string advice = ToString(answer.advice);
  if (!answer.fits() && !cut.empty()) advice += "; " + cut;
  THIMBLE_TRY(CheckBudget(planned.program, config.budget_bytes, advice));
  if (!cut.empty()) WriteMessage(cut + "\n");
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "plan", "show the memory and arithmetic that training would need; allocates nothing");
  auto flags = std::make_shared<PlanFlags>();
  flags->config.AddTo(*command);
  command->add_flag("--layers", flags->layers, "add a table with one row per layer");
  CLI::Option* json = command->add_flag("--json", flags->json, "print one JSON object");
  command
      ->add_flag("--csv", flags->csv,
                 "print categories as comma-separated values; with --layers, the layers")
      ->excludes(json);
  command->callback([flags, exit_code] {
    const auto result = RunPlan(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
