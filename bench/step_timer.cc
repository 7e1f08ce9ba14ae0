#include "bench/step_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/train_flags.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/cost.h"
#include "thimble/report/text_table.h"
#include "thimble/train/initialize.h"

namespace thimble {
namespace {

// All calls of one op in one training step.
struct OpRow {
  std::string op;
  int64_t calls = 0;
  double seconds = 0;
  double limit_seconds = 0;
  NodeCost cost;
};

std::vector<OpRow> RowsByOp(const Plan& plan, const std::vector<double>& seconds,
                            const MachinePeaks& peaks) {
  std::map<std::string, OpRow> by_op;
  for (size_t step = 0; step < seconds.size(); ++step) {
    const Node& node = plan.graph.node(plan.steps[step].node);
    const NodeCost cost = CostOf(plan.graph, BuiltinOps(), node);
    OpRow& row = by_op[node.op];
    row.op = node.op;
    ++row.calls;
    row.seconds += seconds[step];
    row.limit_seconds += peaks.LimitSeconds(node.op, cost);
    row.cost.flops += cost.flops;
    row.cost.bytes += cost.bytes;
  }
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
          fmt::format("{:.2f}", row.seconds * 1e3),
          fmt::format("{:.1f}%", 100 * row.seconds / all_seconds),
          fmt::format("{:.1f}", static_cast<double>(row.cost.flops) / row.seconds / 1e9),
          fmt::format("{:.1f}", static_cast<double>(row.cost.bytes) / row.seconds / 1e9),
          fmt::format("{:.2f}", row.limit_seconds * 1e3),
          fmt::format("{:.0f}%", 100 * row.limit_seconds / row.seconds)};
}

}  // namespace

Result<StepTimer> StepTimer::Create(const TrainConfig& config) {
  THIMBLE_ASSIGN_OR_RETURN(TrainingProgram program, PlanForBench(config));
  THIMBLE_ASSIGN_OR_RETURN(auto executor, Executor::Create(program.program, BuiltinOps()));
  return StepTimer(config, std::move(program), std::move(executor));
}

StepTimer::StepTimer(const TrainConfig& config, TrainingProgram program,
                     std::unique_ptr<Executor> executor)
    : config_(config),
      program_(std::move(program)),
      executor_(std::move(executor)),
      op_seconds_(plan().steps.size()) {
  const ImageSpec& format = program_.model.images;
  images_.resize(
      static_cast<size_t>(program_.batch * format.height * format.width * format.channels));
  for (size_t i = 0; i < images_.size(); ++i) {
    images_[i] = static_cast<uint8_t>(i * 2654435761U >> 13);  // looks random
  }
  samples_.resize(static_cast<size_t>(program_.batch));
  std::iota(samples_.begin(), samples_.end(), 0);
  labels_.resize(static_cast<size_t>(program_.batch));
  for (size_t i = 0; i < labels_.size(); ++i) {
    labels_[i] = static_cast<int32_t>(i % static_cast<size_t>(format.classes));
  }
  InitializeResidents(*executor_, program_.inits, config_.seed);
  for (int warm_up = 0; warm_up < 2; ++warm_up) RunStep();  // the first one is audited
}

// Anew before each step: the plan may have reused their bytes.
void StepTimer::FillInputs(size_t plan) {
  executor_->Write(executor_->View(plan, kImagesInput), std::as_bytes(std::span(images_)));
  executor_->Write(executor_->View(plan, kLabelsInput), std::as_bytes(std::span(labels_)));
  if (program_.augmentation != Augmentation::kNone) {
    executor_->Write(executor_->View(plan, kSamplesInput), std::as_bytes(std::span(samples_)));
    WriteNumber(*executor_, executor_->View(plan, kEpochInput), int32_t{1});
  }
  // Small, so that weights stay ordinary numbers however long the benchmark runs.
  WriteNumber(*executor_, executor_->View(plan, kLearningRateInput), 0.01F);
}

double StepTimer::RunStep() {
  const size_t plan = program_.TrainPlan(program_.batch);
  executor_->Prepare(plan);
  FillInputs(plan);
  const auto begin = std::chrono::steady_clock::now();
  if (executor_->last_run_was_audited()) {
    executor_->Run(plan);
  } else {
    executor_->RunTimed(plan, op_seconds_);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void StepTimer::Measure(double seconds) {
  std::fill(op_seconds_.begin(), op_seconds_.end(), 0.0);
  step_seconds_.clear();
  const size_t wanted = static_cast<size_t>(config_.steps);
  double total = 0;
  while (wanted > 0 ? step_seconds_.size() < wanted
                    : total < seconds || step_seconds_.size() < kMinSteps) {
    step_seconds_.push_back(RunStep());
    total += step_seconds_.back();
  }
  std::sort(step_seconds_.begin(), step_seconds_.end());
}

std::string StepTimer::ToJson() const {
  const double median = step_seconds_[step_seconds_.size() / 2];
  const double flops = static_cast<double>(CostOf(plan().graph, BuiltinOps()).step_flops);
  const nlohmann::json line = {
      {"model", config_.model},
      {"batch", program_.batch},
      {"device", executor_->device().name()},
      {"threads", executor_->pool().num_threads()},
      {"simd", ActiveSimdTarget()},
      {"steps", step_seconds_.size()},
      {"ms", median * 1e3},
      {"fastest_ms", step_seconds_.front() * 1e3},
      {"images_per_second", static_cast<double>(program_.batch) / median},
      {"gflops", flops / median / 1e9},
      {"arena_bytes", program_.program.arena_bytes},
  };
  return line.dump();
}

std::string StepTimer::OpTable(const MachinePeaks& peaks) const {
  std::vector<double> seconds = op_seconds_;
  for (double& sum : seconds) sum /= static_cast<double>(step_seconds_.size());
  const std::vector<OpRow> rows = RowsByOp(plan(), seconds, peaks);
  const OpRow total = Total(rows);
  TextTable table({"op", "calls", "ms", "share", "GFLOP/s", "GB/s", "limit ms", "reached"});
  for (const OpRow& row : rows) table.AddRow(Cells(row, total.seconds));
  table.AddRow(Cells(total, total.seconds));
  return fmt::format("limits: {:.0f} GFLOP/s, {:.1f} GB/s with {} threads\n{}",
                     peaks.flops_per_second / 1e9, peaks.copied_bytes_per_second / 1e9,
                     executor_->pool().num_threads(), table.ToString());
}

}  // namespace thimble
