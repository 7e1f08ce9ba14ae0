// The executor's calls to its device and their order, on a device that only behaves like a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exec/planted_kernel.h"
#include "tests/exec/small_training.h"
#include "tests/support/recording_device.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// x -> relu -> y, 20 elements, and a separate parameter.
struct OnRecordingDevice {
  OnRecordingDevice() {
    Graph graph;
    NodeSpec spec;
    spec.op = "relu";
    spec.inputs = {graph.AddValue({"x", {20}, DType::kF32, Role::kInput, {}, {}})};
    spec.output_role = Role::kActivation;
    spec.output_names = {"y"};
    graph.outputs = AppendNode(graph, BuiltinOps(), std::move(spec)).value();
    graph.AddValue({"w", {5}, DType::kF32, Role::kParameter, {}, {}});
    Program program = PlanProgram({{"plan", graph}}, BuiltinOps(), {}, {}).value();
    auto owned = std::make_unique<RecordingDevice>(program.arena_bytes);
    device = owned.get();
    executor = Executor::CreateOn(std::move(owned), std::move(program), BuiltinOps()).value();
    x = executor->View(0, "x");
    y = executor->View(0, "y");
    device->TakeLog();
  }

  void Run(std::span<const float> from, std::span<float> to) const {
    executor->Prepare(0);
    executor->Write(x, std::as_bytes(from));
    executor->Run(0);
    executor->Read(y, std::as_writable_bytes(to));
  }

  RecordingDevice* device = nullptr;
  std::unique_ptr<Executor> executor;
  TensorView x;
  TensorView y;
};

TEST(ExecutorOnDevice, TheAuditedRunIsNotReplayed) {
  const OnRecordingDevice run;
  const std::vector<float> in(20, -1.0F);
  std::vector<float> out(20);
  run.Run(in, out);
  EXPECT_THAT(run.device->TakeLog(), ElementsAre("write 80", "read 80"));
  EXPECT_TRUE(run.executor->last_run_was_slower());
  for (int i = 0; i < 2; ++i) {
    run.Run(in, out);
    EXPECT_EQ(run.executor->last_run_was_slower(), i == 0) << "recorded";
    EXPECT_THAT(run.device->TakeLog(), ElementsAre("write 80", "replay 0", "read 80"));
  }
}

TEST(ExecutorOnDevice, ResultsAreThereWhenTheDeviceHasComeSoFar) {
  const OnRecordingDevice run;
  const std::vector<float> in(20, 3.0F);
  std::vector<float> out(20);
  run.Run(in, out);
  EXPECT_NE(out, in);
  run.device->Wait(run.device->Mark());
  EXPECT_EQ(out, in);
}

TEST(ExecutorOnDevice, ResidentsAreFetchedAndStoredOneByOne) {
  const OnRecordingDevice run;
  const auto bytes = run.executor->ResidentBytes("w");
  EXPECT_NE(bytes.data(), run.executor->View(0, "w").data);
  std::fill(bytes.begin(), bytes.end(), std::byte{1});
  run.executor->StoreResidents();
  EXPECT_THAT(run.device->TakeLog(), ElementsAre("write 20"));
  std::fill(bytes.begin(), bytes.end(), std::byte{2});
  run.executor->FetchResidents();
  EXPECT_THAT(run.device->TakeLog(), ElementsAre("read 64"));
  EXPECT_THAT(bytes, testing::Each(std::byte{1}));
  // The padding after it stays painted.
  std::vector<float> numbers(20, 1.0F);
  run.Run(numbers, numbers);
  run.executor->ScanArena();
  EXPECT_THAT(run.executor->audit().faults(), IsEmpty());
}

// Its steps run as much out of order as their bytes allow.
TEST(ExecutorOnDevice, TrainsAsOnTheCpu) {
  SmallTraining cpu;
  Program program = cpu.executor().program();
  auto owned = std::make_unique<RecordingDevice>(program.arena_bytes);
  const RecordingDevice& device = *owned;
  SmallTraining other(
      Executor::CreateOn(std::move(owned), std::move(program), BuiltinOps()).value());
  for (uint32_t step = 0; step < 3; ++step) {
    EXPECT_EQ(other.Run(kTrain, step), cpu.Run(kTrain, step));
    EXPECT_EQ(other.Run(kEvaluate, step), cpu.Run(kEvaluate, step));
  }
  EXPECT_TRUE(other.Residents() == cpu.Residents());
  EXPECT_GT(device.out_of_order(), 10);
  other.executor().ScanArena();
  EXPECT_THAT(other.executor().audit().faults(), IsEmpty());
  EXPECT_EQ(other.executor().audit().measured_peak_bytes(), other.executor().planned_peak_bytes());
}

TEST(ExecutorOnDeviceDeathTest, WrongSizes) {
  const OnRecordingDevice run;
  float number = 0;
  EXPECT_DEATH(WriteNumber(*run.executor, run.x, number), "got 4 bytes, expected 80");
  EXPECT_DEATH((void)ReadNumber<float>(*run.executor, run.y), "got 4 bytes, expected 80");
  EXPECT_DEATH((void)Executor::CreateOn(std::make_unique<RecordingDevice>(64),
                                        run.executor->program(), BuiltinOps()),
               "the arena has 64 bytes, expected");
}

}  // namespace
}  // namespace thimble
