#include "bench/train_flags.h"

#include <fmt/format.h>

#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/options/options.h"
#include "thimble/train/task/find_task.h"

namespace thimble {

TrainConfig BenchDefaults() { return {.data = "cifar10", .threads = 2}; }

Result<void> ReadTrainFlag(const std::vector<std::string>& arguments, size_t* index,
                           TrainConfig& config) {
  const std::string& flag = arguments[*index];
  const Option* option = flag.starts_with("--") ? FindOption(flag.substr(2)) : nullptr;
  if (option == nullptr) return BadInput(fmt::format("{}: unknown option (see --help)", flag));
  if (option->kind == OptionKind::kSwitch) return option->set(config, "true");
  if (*index + 1 == arguments.size()) return BadInput(fmt::format("{}: expected a value", flag));
  return option->set(config, arguments[++*index]);
}

Result<TrainingProgram> PlanForBench(const TrainConfig& config, BenchBatches batches) {
  THIMBLE_TRY(CheckConfig(config));
  THIMBLE_TRY(PinSimdTarget(config.simd));
  THIMBLE_ASSIGN_OR_RETURN(const TaskPtr task, DescribeTask(config));
  const TaskPtr planned = batches == BenchBatches::kFull ? task->InFullBatches() : task;
  THIMBLE_ASSIGN_OR_RETURN(TrainingProgram program,
                           MakeTrainingProgram(config, planned, BuiltinOps()));
  THIMBLE_TRY(CheckBudget(program.program, config.budget_bytes));
  return program;
}

}  // namespace thimble
