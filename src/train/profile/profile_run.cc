#include "thimble/train/profile/profile_run.h"

#include <algorithm>
#include <chrono>

#include "thimble/base/check.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/loop/loss_scale_watch.h"
#include "thimble/train/profile/made_batch.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

// Requires at least one element.
double Median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// Runs training steps with full batches repeatedly.
class StepRunner {
 public:
  StepRunner(const TrainingProgram& program, Executor& executor)
      : executor_(executor), step_(program, executor), measured_buffers_(step_.num_plans()) {}

  const MadeStep& step() const { return step_; }
  // Bytes that the audit found in use in each buffer of plan `index` of the step.
  const std::vector<size_t>& measured_buffers(size_t index) const {
    return measured_buffers_[index];
  }

  void Run() {
    step_.ForEachRun([&](size_t index, bool first_part) {
      step_.Prepare(index, first_part);
      executor_.Run(step_.plan(index));
      if (executor_.last_run_was_audited()) {
        measured_buffers_[index] = executor_.audit().measured_buffers();
      }
    });
  }

  // Seconds of one step, from an idle device to an idle device.
  double TimeWhole() {
    executor_.device().Synchronize();
    const Clock::time_point begin = Clock::now();
    Run();
    executor_.device().Synchronize();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  // Seconds by plan and op, each the mean over the plan's runs.
  std::vector<std::vector<double>> TimeOps() {
    std::vector<std::vector<double>> seconds;
    for (size_t index = 0; index < step_.num_plans(); ++index) {
      seconds.emplace_back(executor_.program().plans[step_.plan(index)].steps.size(), 0.0);
    }
    step_.ForEachRun(
        [&](size_t index, bool first_part) { TimeOne(index, first_part, seconds[index]); });
    for (size_t index = 0; index < step_.num_plans(); ++index) {
      for (double& sum : seconds[index]) sum /= static_cast<double>(step_.runs(index));
    }
    return seconds;
  }

 private:
  void TimeOne(size_t index, bool first_part, std::span<double> seconds) {
    // Keeps an asynchronous device busy first, so that no op waits for the host, which launches ops
    // one by one here.
    constexpr int kRunsAhead = 4;
    if (executor_.device().runs_in_flight() > 1) {
      for (int run = 0; run < kRunsAhead; ++run) {
        step_.Prepare(index, first_part);
        executor_.Run(step_.plan(index));
      }
    }
    step_.Prepare(index, first_part);
    executor_.RunTimed(step_.plan(index), seconds);
  }

  Executor& executor_;
  MadeStep step_;
  std::vector<std::vector<size_t>> measured_buffers_;  // by plan of the step
};

// By step of the program, over all runs.
std::vector<double> Medians(const std::vector<std::vector<double>>& runs) {
  std::vector<double> medians;
  for (size_t step = 0; step < runs.front().size(); ++step) {
    std::vector<double> seconds;
    for (const std::vector<double>& run : runs) seconds.push_back(run[step]);
    medians.push_back(Median(std::move(seconds)));
  }
  return medians;
}

void Time(StepRunner& runner, int repeat, Profile& profile) {
  std::vector<double> whole;
  for (int i = 0; i < repeat; ++i) whole.push_back(runner.TimeWhole());
  // By plan, run and step of the program.
  std::vector<std::vector<std::vector<double>>> timed(runner.step().num_plans());
  for (int i = 0; i < repeat; ++i) {
    std::vector<std::vector<double>> seconds = runner.TimeOps();
    for (size_t plan = 0; plan < timed.size(); ++plan) {
      timed[plan].push_back(std::move(seconds[plan]));
    }
  }
  profile.step_seconds = Median(std::move(whole));
  profile.op_seconds = Medians(timed[0]);
  for (size_t plan = 1; plan < timed.size(); ++plan) {
    profile.others[plan - 1].op_seconds = Medians(timed[plan]);
  }
  profile.timed_runs = std::move(timed[0]);
}

void Describe(const TrainConfig& config, const TrainingProgram& program, const StepRunner& runner,
              const OpRegistry& ops, Executor& executor, Profile& profile) {
  const ProgramRecord all = RecordOf(program.program, ops);
  const bool on_cpu = executor.device().kind() == DeviceKind::kCpu;
  profile.model = program.task->model();
  profile.batch = program.batch;
  profile.unit = program.task->unit();
  profile.device_name = executor.device().name();
  profile.target = on_cpu ? std::string(ActiveSimdTarget()) : ResolvedMath(config);
  profile.threads = executor.pool().num_threads();
  profile.record = all.plans[runner.step().plan(0)];
  for (size_t index = 1; index < runner.step().num_plans(); ++index) {
    profile.others.push_back({all.plans[runner.step().plan(index)], {}, {}});
  }
  profile.arena_bytes = program.program.arena_bytes;
  profile.host_may_allocate = !on_cpu;
}

// Scans the arena and stores what the audit found in it and in the first runs.
void TakeMeasurements(const StepRunner& runner, Executor& executor, Profile& profile) {
  executor.ScanArena();
  const MemoryAudit& audit = executor.audit();
  profile.measured_holdings =
      MeasuredHoldings(profile.record.holdings, runner.measured_buffers(0), audit);
  for (size_t index = 1; index < runner.step().num_plans(); ++index) {
    OtherPlan& other = profile.others[index - 1];
    other.measured_holdings =
        MeasuredHoldings(other.record.holdings, runner.measured_buffers(index), audit);
  }
  profile.allocated_bytes = executor.device().arena().size();
  profile.planned_peak_bytes = executor.planned_peak_bytes();
  profile.measured_peak_bytes = audit.measured_peak_bytes();
  profile.faults = audit.faults();
  profile.heap_calls_in_steps = executor.allocations_in_runs().heap_calls;
  profile.map_calls_in_steps = executor.allocations_in_runs().map_calls;
  profile.device_allocations_in_steps = executor.device_allocations_in_runs();
}

}  // namespace

Result<Profile> RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                           const OpRegistry& ops) {
  THIMBLE_TRY(CheckBudget(program.program, config.budget_bytes));
  THIMBLE_TRY(CheckDevice(DeviceOf(config)));
  THIMBLE_ASSIGN_OR_RETURN(auto executor, Executor::CreateFor(program.program, ops));
  return RunProfile(config, program, repeat, ops, *executor);
}

Profile RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                   const OpRegistry& ops, Executor& executor) {
  THIMBLE_CHECK(repeat >= 1, "expected at least 1 run, got {}", repeat);
  Profile profile;
  InitializeResidents(executor, program.inits, config.seed, program.update.sparsity);
  InitializeLossScale(executor, program.update);
  executor.StoreResidents();
  FillPrefetchRing(executor);
  StepRunner runner(program, executor);
  Describe(config, program, runner, ops, executor, profile);
  // The first run is audited; in the second one a device may record a graph for later runs.
  runner.Run();
  runner.Run();
  Time(runner, repeat, profile);
  TakeMeasurements(runner, executor, profile);
  return profile;
}

}  // namespace thimble
