#include <memory>
#include <optional>
#include <utility>

#include "apps/thimble/command.h"
#include "thimble/base/atomic_file.h"
#include "thimble/base/standard_streams.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/frontier_answer.h"
#include "thimble/report/plan_answer.h"
#include "thimble/report/plan_text.h"
#include "thimble/report/plots/frontier_plot.h"
#include "thimble/report/text_style.h"
#include "thimble/train/options/options.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/planning/frontier.h"
#include "thimble/train/planning/planning_memory.h"
#include "thimble/train/planning/savings.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/step_time/op_times_file.h"
#include "thimble/train/task/find_task.h"

namespace thimble {
namespace {

struct PlanFlags {
  ConfigFlags config;
  bool layers = false;
  bool json = false;
  bool csv = false;
  bool sweep = false;
  std::string plot;
};

// The whole frontier instead of one plan.
Result<int> RunSweep(const PlanFlags& flags, const TrainConfig& config, const PlanSizer& sizer) {
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize plain, sizer.Of(PlainConfig(config)));
  FrontierAnswer answer{config.model, config.batch, config.device, plain.arena_bytes, {}};
  THIMBLE_ASSIGN_OR_RETURN(answer.points, FindFrontier(config, sizer));
  constexpr double kPlotWidth = 640;
  if (!flags.plot.empty()) {
    THIMBLE_TRY(WriteFileAtomically(flags.plot, FrontierPlot(answer.points, kPlotWidth).File()));
  }
  Print("{}", flags.json ? ToJson(answer) : FrontierText(answer, StyleOfOutput()));
  return 0;
}

// `choice`: what the budget chose, if anything. It takes the place of the table of savings, which
// --csv does not have either.
Result<PlanAnswer> Answer(const PlanFlags& flags, const TrainConfig& config,
                          const TrainingProgram& planned, std::optional<BudgetChoice> choice,
                          const PlanSizer& sizer) {
  PlanAnswer answer{.model = config.model,
                    .batch = planned.batch,
                    .budget_bytes = config.budget_bytes,
                    .record = {}};
  answer.choice = std::move(choice);
  const bool with_savings = !answer.choice && !flags.csv;
  if (with_savings) {
    THIMBLE_ASSIGN_OR_RETURN(answer.savings, FindSavings(config, sizer));
  }
  if (with_savings && planned.main_plan().graph.nodes.size() <= kQuicklySearched) {
    THIMBLE_ASSIGN_OR_RETURN(answer.smallest, FindSmallestArenas(config, sizer));
  }
  answer.plain = IsPlain(config);
  THIMBLE_ASSIGN_OR_RETURN(answer.plain_arena_bytes, PlainArenaBytes(config, planned, sizer.ops()));
  answer.record = RecordOf(planned, sizer.ops(), answer.plain_arena_bytes);
  if (!answer.fits()) {
    THIMBLE_ASSIGN_OR_RETURN(answer.advice, AdviseTraining(config, sizer));
  }
  return answer;
}

Result<int> RunPlan(const PlanFlags& flags) {
  THIMBLE_ASSIGN_OR_RETURN(TrainConfig config, flags.config.Resolve());
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const TaskPtr task, DescribeTask(config));
  const std::string cut = CutMessage(config, *task);
  config = CutToData(std::move(config), *task);
  const OpRegistry& ops = BuiltinOps();
  THIMBLE_TRY(CheckPlanningMemory(*task, ops, ReadMemoryLimits()));
  const OpTimes times = LoadOpTimes(config);
  const PlanSizer sizer(task, ops, times);
  if (flags.sweep) return RunSweep(flags, config, sizer);
  // If nothing fits, the answer shows what was asked for.
  const auto choice = ChooseOrAdvise(config, sizer);
  if (!choice.ok() && choice.error().kind != ErrorKind::kDoesNotFit) return choice.error();
  if (choice.ok()) config = choice->config;
  THIMBLE_ASSIGN_OR_RETURN(const TrainingProgram planned, MakeTrainingProgram(config, task, ops));
  std::optional<BudgetChoice> chosen;
  if (choice.ok() && !choice->levers.empty()) chosen = *choice;
  THIMBLE_ASSIGN_OR_RETURN(PlanAnswer answer,
                           Answer(flags, config, planned, std::move(chosen), sizer));
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
  CLI::Option* csv =
      command
          ->add_flag("--csv", flags->csv,
                     "print categories as comma-separated values; with --layers, the layers")
          ->excludes(json);
  CLI::Option* sweep = command->add_flag(
      "--sweep", flags->sweep, "show what every budget would choose, from the plain plan down");
  sweep->excludes(csv);
  command->add_option("--plot", flags->plot, "draw the sweep to this SVG file")
      ->needs(sweep)
      ->type_name("FILE")
      ->group(option_group::kWhere);
  command->callback([flags, exit_code] {
    const auto result = RunPlan(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
