// The executor on a GPU. Without one these tests are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/planted_kernel.h"
#include "tests/exec/small_training.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The device of the executor under test: kernels planted here have no GPU code and write through
// it.
Device* device_of_kernels = nullptr;

void WriteWordsOnGpu(const KernelCall& call, int64_t count) {
  static const std::vector<float> words(1000, 5.0F);
  device_of_kernels->Write(call.outputs[0].bytes().data(),
                           std::as_bytes(std::span(words).first(static_cast<size_t>(count))));
}
void WriteAllOnGpu(const KernelCall& call) { WriteWordsOnGpu(call, NumWords(call)); }
void WriteOneWordTooManyOnGpu(const KernelCall& call) { WriteWordsOnGpu(call, NumWords(call) + 1); }
void WriteOneWordTooFewOnGpu(const KernelCall& call) { WriteWordsOnGpu(call, NumWords(call) - 1); }

class CudaExecutorTest : public testing::Test {
 protected:
  void SetUp() override { THIMBLE_CUDA_OR_SKIP(); }

  // Audited, x -> planted -> p. All faults, one per line.
  static std::string FaultsOf(void (*run)(const KernelCall&), int64_t elements) {
    PlantedRun planted(run, 0, DeviceKind::kCuda);
    planted.Output(planted.Append("planted", "p", planted.Input(elements)));
    planted.Make();
    device_of_kernels = &planted.executor().device();
    planted.RunOnce();
    return planted.Faults();
  }
};

TEST_F(CudaExecutorTest, TheAuditFindsAStrayWord) {
  EXPECT_EQ(FaultsOf(&WriteAllOnGpu, PlantedRun::kPadded), "");
  EXPECT_THAT(FaultsOf(&WriteOneWordTooManyOnGpu, PlantedRun::kPadded),
              HasSubstr("'p' at offset 128 has 80 bytes planned, 84 found in use"));
}

TEST_F(CudaExecutorTest, TheAuditFindsAnUnwrittenEnd) {
  EXPECT_EQ(FaultsOf(&WriteAllOnGpu, PlantedRun::kFlush), "");
  EXPECT_THAT(FaultsOf(&WriteOneWordTooFewOnGpu, PlantedRun::kFlush),
              HasSubstr("'p' at offset 128 has 128 bytes planned, 124 found in use"));
}

// y = (x + x) + x, which needs only one kind of kernel.
class CudaAddTest : public CudaExecutorTest {
 protected:
  static constexpr int64_t kElements = 1000;

  void SetUp() override {
    CudaExecutorTest::SetUp();
    if (IsSkipped()) return;
    Graph graph;
    const ValueId x = graph.AddValue({"x", {kElements}, DType::kF32, Role::kInput, {}, {}});
    const ValueId twice = Add(graph, x, x, "twice");
    graph.outputs = {Add(graph, twice, x, "y")};
    PlanOptions options;
    options.device = DeviceKind::kCuda;
    auto program = PlanProgram({{"plan", graph}}, BuiltinOps(), {}, options);
    ASSERT_TRUE(program.ok()) << program.error().message;
    executor_ = MakeExecutor(std::move(program).value(), BuiltinOps());
  }
  static ValueId Add(Graph& graph, ValueId a, ValueId b, const std::string& name) {
    NodeSpec spec;
    spec.op = "add";
    spec.inputs = {a, b};
    spec.layer = name;
    spec.output_role = Role::kActivation;
    spec.output_names = {name};
    return AppendNode(graph, BuiltinOps(), std::move(spec)).value()[0];
  }
  std::vector<float> Thrice(float number) {
    const std::vector<float> in(kElements, number);
    std::vector<float> out(kElements);
    executor_->Prepare(0);
    executor_->Write(executor_->View(0, "x"), std::as_bytes(std::span(in)));
    executor_->Run(0);
    executor_->ReadNow(executor_->View(0, "y"), std::as_writable_bytes(std::span(out)));
    return out;
  }

  std::unique_ptr<Executor> executor_;
};

TEST_F(CudaAddTest, ReplayedRunsGiveTheResultsOfTheAuditedOne) {
  for (const float number : {1.0F, 1.0F, 2.5F, -7.0F}) {
    EXPECT_THAT(Thrice(number), testing::Each(3 * number));
  }
}

TEST_F(CudaAddTest, MeasuresWhatWasPlannedAndAllocatesNothing) {
  const int64_t allocations = executor_->device().allocation_calls();
  for (int i = 0; i < 3; ++i) Thrice(1);
  executor_->ScanArena();
  EXPECT_THAT(executor_->audit().faults(), IsEmpty());
  EXPECT_EQ(executor_->audit().measured_peak_bytes(), executor_->planned_peak_bytes());
  EXPECT_EQ(executor_->device_allocations_in_runs(), 0);
  EXPECT_EQ(executor_->device().allocation_calls(), allocations);
}

TEST_F(CudaAddTest, TimesEveryStep) {
  Thrice(1);
  std::vector<double> seconds(2);
  executor_->Prepare(0);
  executor_->RunTimed(0, seconds);
  EXPECT_THAT(seconds, testing::Each(testing::Gt(0.0)));
}

class CudaTrainingTest : public CudaExecutorTest {
 protected:
  static PlanOptions Options(const std::set<std::string>& kernel_options = {}) {
    PlanOptions options;
    options.device = DeviceKind::kCuda;
    options.limits.scratch_bytes_per_thread = 16 << 20;
    options.kernel_options = kernel_options;
    return options;
  }
};

TEST_F(CudaTrainingTest, MeasuresWhatWasPlanned) {
  for (const char* pass : {"none", "order", "in-place", "placement", "rest"}) {
    PlanOptions options = Options();
    if (std::string(pass) != "none") options.skipped_passes = {pass};
    SmallTraining training(options);
    for (uint32_t step = 0; step < 2; ++step) {
      training.Run(kTrain, step);
      training.Run(kEvaluate, step);
    }
    Executor& executor = training.executor();
    executor.ScanArena();
    EXPECT_THAT(executor.audit().faults(), IsEmpty()) << pass;
    EXPECT_EQ(executor.audit().measured_peak_bytes(), executor.planned_peak_bytes()) << pass;
    EXPECT_EQ(executor.device_allocations_in_runs(), 0) << pass;
  }
}

TEST_F(CudaTrainingTest, TheAuditAndTheRecordingChangeNoResult) {
  SmallTraining audited(Options());
  SmallTraining plain(Options());
  const ResidentContents start = plain.Residents();
  plain.Run(kTrain, 9);
  plain.Run(kTrain, 8);
  plain.SetResidents(start);
  EXPECT_EQ(plain.Run(kTrain, 0), audited.Run(kTrain, 0));
  EXPECT_TRUE(plain.Residents() == audited.Residents());
}

TEST_F(CudaTrainingTest, SameBitsTwice) {
  SmallTraining first(Options());
  SmallTraining second(Options());
  for (uint32_t step = 0; step < 5; ++step) {
    EXPECT_EQ(first.Run(kTrain, step), second.Run(kTrain, step)) << step;
  }
  EXPECT_TRUE(first.Residents() == second.Residents());
}

TEST_F(CudaTrainingTest, FollowsTheCpu) {
  // Both are near the exact loss: fp32 up to rounding, tf32 up to ten bits of each factor.
  const auto expect_close = [](const std::set<std::string>& options, float tolerance) {
    SmallTraining cpu;
    SmallTraining gpu(Options(options));
    for (uint32_t step = 0; step < 3; ++step) {
      const float expected = cpu.Run(kTrain, step);
      EXPECT_NEAR(gpu.Run(kTrain, step), expected, tolerance * std::abs(expected)) << step;
    }
  };
  expect_close({"fp32"}, 1e-4F);
  expect_close({}, 2e-2F);
}

}  // namespace
}  // namespace thimble
