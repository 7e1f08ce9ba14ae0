#include "thimble/train/profile_run.h"

#include <algorithm>
#include <chrono>

#include "thimble/base/check.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/train/initialize.h"
#include "thimble/train/made_batch.h"

namespace thimble {
namespace {

using Clock = std::chrono::steady_clock;

// Requires at least one element.
double Median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

// Runs the plan of full batches again and again.
class StepRunner {
 public:
  StepRunner(const TrainingProgram& program, Executor& executor)
      : executor_(executor),
        plan_(program.TrainPlan(program.batch)),
        num_steps_(program.program.plans[plan_].steps.size()),
        batch_(program, executor) {}

  void Run() {
    Prepare();
    executor_.Run(plan_);
  }

  // Seconds of one step, from an idle device to an idle device.
  double TimeWhole() {
    executor_.device().Synchronize();
    const Clock::time_point begin = Clock::now();
    Run();
    executor_.device().Synchronize();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  // Seconds by step of the program.
  std::vector<double> TimeOps() {
    // A device that works by itself gets something to do meanwhile, so that no op waits for the
    // host, which launches them one by one here.
    constexpr int kRunsAhead = 4;
    std::vector<double> seconds(num_steps_, 0.0);
    if (executor_.device().runs_in_flight() > 1) {
      for (int run = 0; run < kRunsAhead; ++run) Run();
    }
    Prepare();
    executor_.RunTimed(plan_, seconds);
    return seconds;
  }

 private:
  void Prepare() {
    executor_.Prepare(plan_);
    batch_.Write();
  }

  Executor& executor_;
  size_t plan_;
  size_t num_steps_;
  MadeBatch batch_;
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
  for (int i = 0; i < repeat; ++i) profile.timed_runs.push_back(runner.TimeOps());
  profile.step_seconds = Median(std::move(whole));
  profile.op_seconds = Medians(profile.timed_runs);
}

void Describe(const TrainConfig& config, const TrainingProgram& program, const OpRegistry& ops,
              Executor& executor, Profile& profile) {
  const size_t plan = program.TrainPlan(program.batch);
  const bool on_cpu = executor.device().kind() == DeviceKind::kCpu;
  profile.model = program.model.name;
  profile.batch = program.batch;
  profile.device_name = executor.device().name();
  profile.target = on_cpu ? std::string(ActiveSimdTarget()) : ResolvedMath(config);
  profile.threads = executor.pool().num_threads();
  profile.record = RecordOf(program.program.plans[plan], program.program.names[plan], ops);
  profile.arena_bytes = program.program.arena_bytes;
  profile.host_may_allocate = !on_cpu;
}

// Scans the arena and takes down what the audit found in it and in the first run.
void TakeMeasurements(Executor& executor, Profile& profile) {
  executor.ScanArena();
  const MemoryAudit& audit = executor.audit();
  profile.measured_holdings = MeasuredHoldings(profile.record.holdings, audit);
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
  THIMBLE_ASSIGN_OR_RETURN(auto executor, Executor::Create(program.program, ops));
  return RunProfile(config, program, repeat, ops, *executor);
}

Profile RunProfile(const TrainConfig& config, const TrainingProgram& program, int repeat,
                   const OpRegistry& ops, Executor& executor) {
  THIMBLE_CHECK(repeat >= 1, "{} runs", repeat);
  Profile profile;
  Describe(config, program, ops, executor, profile);
  InitializeResidents(executor, program.inits, config.seed);
  FillPrefetchRing(executor);
  StepRunner runner(program, executor);
  // The first run is audited; in the second one a device may record what it repeats ever after.
  runner.Run();
  runner.Run();
  Time(runner, repeat, profile);
  TakeMeasurements(executor, profile);
  return profile;
}

}  // namespace thimble
