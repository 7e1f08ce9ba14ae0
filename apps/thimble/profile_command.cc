#include <memory>

#include "apps/thimble/command.h"
#include "thimble/base/atomic_file.h"
#include "thimble/base/standard_streams.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/report/profile_csv.h"
#include "thimble/report/profile_json.h"
#include "thimble/report/profile_text.h"
#include "thimble/report/text_style.h"
#include "thimble/report/trace_json.h"
#include "thimble/train/options/options.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/profile/profile_run.h"
#include "thimble/train/step_time/op_times_file.h"
#include "thimble/train/task/find_task.h"

namespace thimble {
namespace {

struct ProfileFlags {
  ConfigFlags config;
  int repeat = 5;
  ProfileTables tables;
  std::string trace;
  bool json = false;
  bool csv = false;
};

std::string Csv(const Profile& profile, const ProfileTables& tables) {
  if (tables.program) return ProgramCsv(profile);
  return tables.layers ? LayersCsv(profile) : CategoriesCsv(profile);
}

std::string Output(const Profile& profile, const ProfileFlags& flags) {
  if (flags.json) return ToJson(profile);
  return flags.csv ? Csv(profile, flags.tables)
                   : ProfileText(profile, flags.tables, StyleOfOutput());
}

// The results are printed and written before a difference between plan and runs becomes an error.
Result<int> RunProfileCommand(const ProfileFlags& flags) {
  if (flags.csv && flags.tables.layers && flags.tables.program) {
    return BadInput("--csv prints one table: --layers or --program, not both");
  }
  THIMBLE_ASSIGN_OR_RETURN(TrainConfig config, flags.config.Resolve());
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const TaskPtr task, DescribeTask(config));
  const std::string cut = CutMessage(config, *task);
  config = CutToData(std::move(config), *task);
  const OpRegistry& ops = BuiltinOps();
  THIMBLE_ASSIGN_OR_RETURN(const BudgetedProgram planned, PlanWithinBudget(config, task, ops));
  const std::string chosen = ToString(planned.choice);
  for (const std::string& message : {cut, chosen}) {
    if (!message.empty()) WriteMessage(message + "\n");
  }
  THIMBLE_ASSIGN_OR_RETURN(Profile profile,
                           RunProfile(planned.choice.config, planned.program, flags.repeat, ops));
  profile.predicted_seconds = StepSeconds(planned.program.program, ops, LoadOpTimes(config));
  Print("{}", Output(profile, flags));
  if (!flags.trace.empty()) THIMBLE_TRY(WriteFileAtomically(flags.trace, TraceJson(profile)));
  THIMBLE_TRY(CheckProfile(profile));
  return 0;
}

}  // namespace

void AddProfileCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "profile", "run a few steps; compare planned and measured memory, and time each op");
  auto flags = std::make_shared<ProfileFlags>();
  flags->config.AddTo(*command);
  command->add_option("--repeat", flags->repeat, "steps to time; the median is reported")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N")
      ->group(option_group::kHow);
  command->add_flag("--layers", flags->tables.layers, "add a table with one row per layer");
  command->add_flag("--program", flags->tables.program,
                    "add a table with one row per step of the program");
  command
      ->add_option("--trace", flags->trace,
                   "write a trace for ui.perfetto.dev or chrome://tracing to this file")
      ->type_name("FILE")
      ->group(option_group::kWhere);
  CLI::Option* json = command->add_flag("--json", flags->json, "print one JSON object");
  command
      ->add_flag("--csv", flags->csv,
                 "print one table as comma-separated values: categories, --layers or --program")
      ->excludes(json);
  command->callback([flags, exit_code] {
    const auto result = RunProfileCommand(*flags);
    *exit_code = result.ok() ? *result : Report(result.error());
  });
}

}  // namespace thimble
