#include "bench/kernel_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/kernel_memory.h"
#include "bench/train_flags.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

TrainingProgram SmallProgram() {
  TrainConfig config = BenchDefaults();
  config.model = "wrn-10-1";
  config.batch = 2;
  auto program = PlanForBench(config);
  EXPECT_TRUE(program.ok());
  return *std::move(program);
}

int64_t CallsOf(const std::vector<KernelCase>& cases, const std::string& prefix) {
  int64_t calls = 0;
  for (const KernelCase& the_case : cases) {
    if (the_case.name.starts_with(prefix)) calls += the_case.calls_per_step;
  }
  return calls;
}

TEST(KernelCases, CoverEveryStepOfThePlanOnceForTheKernelItRuns) {
  const TrainingProgram program = SmallProgram();
  const Plan& plan = program.main_plan();
  const auto cases = DistinctKernelCases(plan, BuiltinOps());
  for (const Step& step : plan.steps) {
    const std::string& op = plan.graph.node(step.node).op;
    const auto steps = std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& other) {
      return plan.graph.node(other.node).op == op;
    });
    const auto& kernel = BuiltinOps().Get(op).kernels()[step.kernel];
    EXPECT_EQ(CallsOf(cases, op + "/" + std::string(kernel.name) + "/"), steps) << op;
  }
}

TEST(KernelCases, HaveNamesOfTheirOwn) {
  const TrainingProgram program = SmallProgram();
  const auto cases = DistinctKernelCases(program.main_plan(), BuiltinOps());
  std::set<std::string> names;
  for (const KernelCase& the_case : cases) EXPECT_TRUE(names.insert(the_case.name).second);
  EXPECT_TRUE(names.contains("conv2d/Conv2dCpu/2x32x32x3_16x3x3x3/padding=1"));
  EXPECT_LT(cases.size(), program.main_plan().steps.size());
}

TEST(KernelCases, LeaveOutTheReferenceWhereThereIsAnother) {
  const TrainingProgram program = SmallProgram();
  for (const auto& the_case : DistinctKernelCases(program.main_plan(), BuiltinOps())) {
    const auto& kernels = the_case.op->kernels();
    const auto on_cpu = std::count_if(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
      return kernel.device == DeviceKind::kCpu;
    });
    if (on_cpu == 1) continue;
    EXPECT_NE(the_case.kernel->name, "reference");
  }
}

// In-place kernels read their own results: these must stay normal numbers, or the benchmark would
// measure denormals.
TEST(KernelMemory, KeepsNumbersOrdinaryOverManyRuns) {
  const TrainingProgram program = SmallProgram();
  const Plan& plan = program.main_plan();
  ThreadPool pool(plan.limits.threads);
  for (const auto& the_case : DistinctKernelCases(plan, BuiltinOps())) {
    if (the_case.in_place.empty()) continue;
    const auto memory = KernelMemory::Create(the_case, plan.limits);
    ASSERT_TRUE(memory.ok());
    for (int run = 0; run < 200; ++run) memory->Run(the_case, pool);
    for (const TensorView& view : memory->outputs()) {
      const auto numbers = view.As<float>();
      EXPECT_TRUE(std::all_of(numbers.begin(), numbers.end(), [](float number) {
        return number == 0 || std::isnormal(number);
      })) << the_case.name;
    }
  }
}

TEST(KernelMemory, LiesAsInAnArena) {
  const TrainingProgram program = SmallProgram();
  const Plan& plan = program.main_plan();
  for (const auto& the_case : DistinctKernelCases(plan, BuiltinOps())) {
    const auto memory = KernelMemory::Create(the_case, plan.limits);
    ASSERT_TRUE(memory.ok());
    for (const TensorView& view : memory->inputs()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % kArenaAlignment, 0);
    }
    for (const auto& [output, input] : the_case.in_place) {
      EXPECT_EQ(memory->outputs()[output].data, memory->inputs()[input].data) << the_case.name;
    }
    EXPECT_EQ(memory->scratch().size(),
              the_case.kernel->scratch_bytes(the_case.call(), plan.limits));
  }
}

}  // namespace
}  // namespace thimble
