#include "bench/step_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/train_flags.h"
#include "thimble/base/json.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/program_record.h"
#include "thimble/report/text_table.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/loop/loss_scale_watch.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Size of the next group if `left` steps are divided into nearly equal groups of at most `most`.
size_t StepsOfNextGroup(size_t left, size_t most) {
  const size_t groups = (left - 1) / most + 1;
  return (left - 1) / groups + 1;
}

// All calls of one op in one training step.
struct OpRow {
  std::string op;
  int64_t calls = 0;
  double seconds = 0;
  double limit_seconds = 0;
  NodeCost cost;
};

// Adds the ops of a plan that runs `runs` times in a step; `seconds` are for all these runs
// together.
void AddPlan(const Plan& plan, int64_t runs, const std::vector<double>& seconds,
             const MachinePeaks& peaks, std::map<std::string, OpRow>& by_op) {
  for (size_t step = 0; step < seconds.size(); ++step) {
    const Node& node = plan.graph.node(plan.steps[step].node);
    const NodeCost cost = CostOf(plan.graph, BuiltinOps(), node);
    OpRow& row = by_op[node.op];
    row.op = node.op;
    row.calls += runs;
    row.seconds += seconds[step];
    row.limit_seconds += static_cast<double>(runs) * peaks.LimitSeconds(node.op, cost);
    row.cost.flops += runs * cost.flops;
    row.cost.bytes += runs * cost.bytes;
  }
}

std::vector<OpRow> Sorted(const std::map<std::string, OpRow>& by_op) {
  std::vector<OpRow> rows;
  for (const auto& [op, row] : by_op) rows.push_back(row);
  std::sort(rows.begin(), rows.end(),
            [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  return rows;
}

OpRow Total(const std::vector<OpRow>& rows) {
  OpRow total;
  total.op = "all";
  for (const OpRow& row : rows) {
    total.calls += row.calls;
    total.seconds += row.seconds;
    total.limit_seconds += row.limit_seconds;
    total.cost.flops += row.cost.flops;
    total.cost.bytes += row.cost.bytes;
  }
  return total;
}

std::vector<std::string> Cells(const OpRow& row, double all_seconds) {
  return {row.op,
          fmt::format("{}", row.calls),
          fmt::format("{:.3f}", row.seconds * 1e3),
          fmt::format("{:.1f}%", 100 * row.seconds / all_seconds),
          fmt::format("{:.1f}", static_cast<double>(row.cost.flops) / row.seconds / 1e9),
          fmt::format("{:.1f}", static_cast<double>(row.cost.bytes) / row.seconds / 1e9),
          fmt::format("{:.3f}", row.limit_seconds * 1e3),
          fmt::format("{:.0f}%", 100 * row.limit_seconds / row.seconds)};
}

}  // namespace

Result<StepTimer> StepTimer::Create(const TrainConfig& config, BenchBatches batches) {
  THIMBLE_ASSIGN_OR_RETURN(TrainingProgram program, PlanForBench(config, batches));
  THIMBLE_ASSIGN_OR_RETURN(auto executor, Executor::Create(program.program, BuiltinOps()));
  return StepTimer(config, std::move(program), std::move(executor));
}

StepTimer::StepTimer(const TrainConfig& config, TrainingProgram program,
                     std::unique_ptr<Executor> executor)
    : config_(config),
      program_(std::move(program)),
      executor_(std::move(executor)),
      step_(program_, *executor_) {
  InitializeResidents(*executor_, program_.inits, config_.seed, program_.update.sparsity);
  InitializeLossScale(*executor_, program_.update);
  executor_->StoreResidents();
  ForgetOps();
  // The first run is audited; in the second one a device may record the work that it then repeats.
  RunGroup(2);
}

size_t StepTimer::steps_per_group() const {
  // Enough that the host's first launch and last wait do not matter.
  constexpr size_t kStepsInFlight = 20;
  return executor_->device().runs_in_flight() > 1 ? kStepsInFlight : 1;
}

void StepTimer::Enqueue(size_t steps) {
  for (size_t step = 0; step < steps; ++step) step_.Run();
}

double StepTimer::RunGroup(size_t steps) {
  executor_->device().Synchronize();
  const auto begin = Clock::now();
  Enqueue(steps);
  executor_->device().Synchronize();
  return SecondsSince(begin);
}

double StepTimer::RunTimedStep() {
  ++num_op_steps_;
  const auto begin = Clock::now();
  step_.ForEachRun([&](size_t index, bool first_part) {
    step_.Prepare(index, first_part);
    executor_->RunTimed(step_.plan(index), op_seconds_[index]);
  });
  return SecondsSince(begin);
}

void StepTimer::Measure(double seconds) {
  ForgetOps();
  num_steps_ = 0;
  step_seconds_.clear();
  const auto wanted = static_cast<size_t>(config_.steps);
  double total = 0;
  while (wanted > 0 ? num_steps_ < wanted : total < seconds || step_seconds_.size() < kMinGroups) {
    const size_t left = wanted > 0 ? wanted - num_steps_ : steps_per_group();
    const size_t steps = StepsOfNextGroup(left, steps_per_group());
    const double took = steps_per_group() == 1 ? RunTimedStep() : RunGroup(steps);
    step_seconds_.push_back(took / static_cast<double>(steps));
    num_steps_ += steps;
    total += took;
  }
  std::sort(step_seconds_.begin(), step_seconds_.end());
}

void StepTimer::MeasureOps() {
  constexpr size_t kOpSteps = 20;
  // Keeps the device busy while the host launches op by op, so that no op waits for the host.
  constexpr size_t kStepsAhead = 4;
  if (steps_per_group() == 1) return;
  ForgetOps();
  while (num_op_steps_ < kOpSteps) {
    Enqueue(kStepsAhead);
    RunTimedStep();
  }
}

double StepTimer::RunInTurn(std::span<const MadeStep> steps, size_t rounds) {
  executor_->device().Synchronize();
  const auto begin = Clock::now();
  for (size_t round = 0; round < rounds; ++round) {
    for (const MadeStep& step : steps) step.Run();
  }
  executor_->device().Synchronize();
  return SecondsSince(begin);
}

Result<std::string> StepTimer::ShapeTable() {
  if (program_.in_parts()) return BadInput("--shapes: only without --microbatch");
  const size_t rounds = steps_per_group();
  std::vector<MadeStep> steps;
  TextTable table({"plan", "ms"});
  const auto add_row = [&](const std::string& name, double seconds) {
    table.AddRow({name, fmt::format("{:.3f}", seconds * 1e3)});
  };
  double sum = 0;
  for (const auto& [shape, plan] : program_.train_plans) {
    steps.emplace_back(program_, *executor_, shape);
    const std::span<const MadeStep> last(&steps.back(), 1);
    RunInTurn(last, 2);  // audited, recorded
    const double seconds = RunInTurn(last, rounds) / static_cast<double>(rounds);
    sum += seconds;
    add_row(program_.program.names[plan], seconds);
  }
  const auto num_shapes = static_cast<double>(steps.size());
  const double in_turn = RunInTurn(steps, rounds) / static_cast<double>(rounds) / num_shapes;
  add_row("mean", sum / num_shapes);
  add_row("all in turn", in_turn);
  return table.ToString();
}

void StepTimer::ForgetOps() {
  op_seconds_.clear();
  for (size_t index = 0; index < step_.num_plans(); ++index) {
    op_seconds_.emplace_back(program_.program.plans[step_.plan(index)].steps.size(), 0.0);
  }
  num_op_steps_ = 0;
}

Result<MachinePeaks> StepTimer::MeasurePeaks() {
  if (on_gpu()) return MeasureMachinePeaksOfGpu(ResolvedMath(config_) == "tf32");
  return MeasureMachinePeaks(executor_->pool());
}

std::string StepTimer::ToJson() const {
  const double median = step_seconds_[step_seconds_.size() / 2];
  const double flops = static_cast<double>(StepCost(program_.program, BuiltinOps()).step_flops);
  Json line{
      {"model", config_.model},
      {"batch", program_.batch},
      {"microbatch", program_.part},
      {"device", executor_->device().name()},
      {"math", ResolvedMath(config_)},
      {"steps", num_steps_},
      {"ms", median * 1e3},
      {"fastest_ms", step_seconds_.front() * 1e3},
      {"gflops", flops / median / 1e9},
      {"arena_bytes", program_.program.arena_bytes},
  };
  line[std::string(program_.task->unit()) + "_per_second"] =
      static_cast<double>(program_.batch) / median;
  if (!on_gpu()) {
    line["threads"] = executor_->pool().num_threads();
    line["simd"] = ActiveSimdTarget();
  }
  return line.Dump();
}

std::string StepTimer::OpTable(const MachinePeaks& peaks) const {
  std::map<std::string, OpRow> by_op;
  for (size_t index = 0; index < step_.num_plans(); ++index) {
    std::vector<double> seconds = op_seconds_[index];
    for (double& sum : seconds) sum /= static_cast<double>(num_op_steps_);
    AddPlan(program_.program.plans[step_.plan(index)], step_.runs(index), seconds, peaks, by_op);
  }
  const std::vector<OpRow> rows = Sorted(by_op);
  const OpRow total = Total(rows);
  TextTable table({"op", "calls", "ms", "share", "GFLOP/s", "GB/s", "limit ms", "reached"});
  for (const OpRow& row : rows) table.AddRow(Cells(row, total.seconds));
  table.AddRow(Cells(total, total.seconds));
  return fmt::format("limits: {}\n{}", Limits(peaks), table.ToString());
}

std::string StepTimer::Limits(const MachinePeaks& peaks) const {
  const double gflops = peaks.flops_per_second / 1e9;
  const std::string copy = fmt::format("{:.1f} GB/s", peaks.copied_bytes_per_second / 1e9);
  if (!on_gpu()) {
    return fmt::format("{:.0f} GFLOP/s, {} with {} threads", gflops, copy,
                       executor_->pool().num_threads());
  }
  const std::string name = executor_->device().name();
  if (peaks.tf32_flops_per_second == 0) {
    return fmt::format("{:.0f} GFLOP/s in fp32, {} on {}", gflops, copy, name);
  }
  return fmt::format("{:.0f} GFLOP/s in TF32 for convolutions, {:.0f} GFLOP/s in fp32, {} on {}",
                     peaks.tf32_flops_per_second / 1e9, gflops, copy, name);
}

}  // namespace thimble
