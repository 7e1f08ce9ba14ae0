// Times whole training steps on made images and tells which op takes how long.
//   thimble_step_bench [--seconds S] [--ops] [--serve] [any option of `thimble train`]
// Prints one line of JSON; with --ops also a table. With --serve it waits for a line on standard
// input before each measurement and ends with the input, so that two programs can be timed in turn.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "thimble/device/cpu/simd_target.h"
#include "thimble/exec/executor.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/cost.h"
#include "thimble/train/initialize.h"
#include "thimble/train/options.h"
#include "thimble/train/training_program.h"

namespace thimble {
namespace {

struct BenchOptions {
  TrainConfig config{.data = "cifar10", .threads = 2};
  double seconds = 10;
  bool ops = false;
  bool serve = false;
};

Result<BenchOptions> ParseArguments(const std::vector<std::string>& arguments) {
  BenchOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(std::min<size_t>(2, arguments[i].size()));
    if (name == "ops") {
      options.ops = true;
      continue;
    }
    if (name == "serve") {
      options.serve = true;
      continue;
    }
    if (++i == arguments.size()) return BadInput(fmt::format("--{}: expected a value", name));
    if (name == "seconds") {
      options.seconds = std::stod(arguments[i]);
      continue;
    }
    const Option* option = FindOption(name);
    if (option == nullptr) return BadInput(fmt::format("--{}: no such option", name));
    THIMBLE_TRY(option->set(options.config, arguments[i]));
  }
  THIMBLE_TRY(CheckConfig(options.config));
  THIMBLE_TRY(PinSimdTarget(options.config.simd));
  return options;
}

class StepBench {
 public:
  static Result<StepBench> Create(const BenchOptions& options) {
    THIMBLE_ASSIGN_OR_RETURN(const PlannedData data, DescribeImageData(options.config.data));
    THIMBLE_ASSIGN_OR_RETURN(TrainingProgram program,
                             MakeTrainingProgram(options.config, data.images, {}, BuiltinOps()));
    THIMBLE_ASSIGN_OR_RETURN(auto executor, Executor::Create(program.program, BuiltinOps()));
    return StepBench(options, std::move(program), std::move(executor));
  }

  // Steps for about the wanted time; the JSON line.
  std::string Measure() {
    std::fill(op_seconds_.begin(), op_seconds_.end(), 0.0);
    std::vector<double> steps;
    for (double total = 0; total < options_.seconds || steps.size() < 3; total += steps.back()) {
      steps.push_back(RunStep());
    }
    num_steps_ = steps.size();
    std::sort(steps.begin(), steps.end());
    const double median = steps[steps.size() / 2];
    const nlohmann::json line = {
        {"model", options_.config.model},
        {"batch", program_.batch},
        {"threads", executor_->pool().num_threads()},
        {"simd", ActiveSimdTarget()},
        {"steps", steps.size()},
        {"ms", median * 1e3},
        {"fastest_ms", steps.front() * 1e3},
        {"images_per_second", static_cast<double>(program_.batch) / median},
        {"gflops",
         static_cast<double>(CostOf(plan().graph, BuiltinOps()).step_flops) / median / 1e9},
        {"arena_bytes", program_.program.arena_bytes}};
    return line.dump();
  }

  // Time per op and phase since Measure began, longest first.
  std::string OpTable() const {
    struct Row {
      double seconds = 0;
      int64_t calls = 0;
      int64_t flops = 0;
      int64_t bytes = 0;
    };
    std::map<std::string, Row> rows;
    double all = 0;
    for (size_t step = 0; step < op_seconds_.size(); ++step) {
      const Node& node = plan().graph.node(plan().steps[step].node);
      const NodeCost cost = CostOf(plan().graph, BuiltinOps(), node);
      Row& row = rows[node.op];
      row.seconds += op_seconds_[step] / static_cast<double>(num_steps_);
      ++row.calls;
      row.flops += cost.flops;
      row.bytes += cost.bytes;
      all += op_seconds_[step] / static_cast<double>(num_steps_);
    }
    std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::string text = fmt::format("{:<28}{:>6}{:>10}{:>8}{:>10}{:>9}\n", "op", "calls", "ms",
                                   "share", "GFLOP/s", "GB/s");
    for (const auto& [op, row] : sorted) {
      text += fmt::format("{:<28}{:>6}{:>10.2f}{:>7.1f}%{:>10.1f}{:>9.1f}\n", op, row.calls,
                          row.seconds * 1e3, 100 * row.seconds / all,
                          static_cast<double>(row.flops) / row.seconds / 1e9,
                          static_cast<double>(row.bytes) / row.seconds / 1e9);
    }
    return text;
  }

 private:
  StepBench(const BenchOptions& options, TrainingProgram program,
            std::unique_ptr<Executor> executor)
      : options_(options),
        program_(std::move(program)),
        executor_(std::move(executor)),
        op_seconds_(plan().steps.size()) {
    InitializeResidents(*executor_, program_.inits, options.config.seed);
    for (int warm_up = 0; warm_up < 2; ++warm_up) RunStep();  // the first one is audited
  }

  const Plan& plan() const { return program_.main_plan(); }

  double RunStep() {
    const size_t plan = program_.TrainPlan(program_.batch);
    executor_->Prepare(plan);
    // Images must be there anew: the plan may reuse their bytes.
    auto images = executor_->View(plan, kImagesInput).As<uint8_t>();
    for (size_t i = 0; i < images.size(); ++i)
      images[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
    auto labels = executor_->View(plan, kLabelsInput).As<int32_t>();
    for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 10);
    executor_->View(plan, kLearningRateInput).As<float>()[0] = 0.01F;
    const auto begin = std::chrono::steady_clock::now();
    if (executor_->last_run_was_audited()) {
      executor_->Run(plan);
    } else {
      executor_->RunTimed(plan, op_seconds_);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  BenchOptions options_;
  TrainingProgram program_;
  std::unique_ptr<Executor> executor_;
  std::vector<double> op_seconds_;  // by step of the plan
  size_t num_steps_ = 1;
};

int Main(const std::vector<std::string>& arguments) {
  const auto options = ParseArguments(arguments);
  if (!options.ok()) {
    std::cerr << "thimble_step_bench: " << options.error().message << "\n";
    return ExitCode(options.error());
  }
  auto bench = StepBench::Create(*options);
  if (!bench.ok()) {
    std::cerr << "thimble_step_bench: " << bench.error().message << "\n";
    return 1;
  }
  std::string line;
  do {
    if (options->serve && !std::getline(std::cin, line)) break;
    std::cout << bench->Measure() << std::endl;
    if (options->ops) std::cout << bench->OpTable();
  } while (options->serve);
  return 0;
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  return thimble::Main(std::vector<std::string>(argv + 1, argv + argc));
}
