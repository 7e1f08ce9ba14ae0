// State that changes several times in a step, executed: the results are those of the references,
// and of the same graph planned in any other way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exec/small_training.h"
#include "tests/support/recording_device.h"
#include "tests/support/reference_interpreter.h"
#include "tests/support/update_in_backward.h"
#include "thimble/exec/bound_plan.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kElements = 24;
constexpr const char* kStrategies[] = {"none", "cheap", "blocks", "blocks:2", "sqrt", "optimal"};

ValueId AddValue(Graph& graph, const char* name, const Shape& shape, Role role) {
  return graph.AddValue({name, shape, DType::kF32, role, {}, {}});
}

ValueId AppendSum(Graph& graph, ValueId a, ValueId b, Phase phase) {
  NodeSpec spec{.op = "add", .inputs = {a, b}, .phase = phase};
  spec.output_role = phase == Phase::kForward ? Role::kActivation : Role::kGradient;
  return AppendNode(graph, BuiltinOps(), std::move(spec)).value()[0];
}

// pool changes this often in backward; each version is read, and forward is rebuilt from the first:
//   h = relu(x + pool) + x;   g_1 = h + pool;   pool_k = pool_k-1 - rate * g_k
//   g_k+1 = g_k + pool_k
Graph PoolGraph(size_t versions) {
  Graph graph;
  const ValueId x = AddValue(graph, "x", {kElements}, Role::kInput);
  const ValueId rate = AddValue(graph, "rate", {1}, Role::kInput);
  ValueId pool = AddValue(graph, "pool", {kElements}, Role::kParameter);
  const ValueId sum = AppendSum(graph, x, pool, Phase::kForward);
  const ValueId relu = AppendNode(graph, BuiltinOps(), {.op = "relu", .inputs = {sum}}).value()[0];
  const ValueId h = AppendSum(graph, relu, x, Phase::kForward);
  ValueId g = AppendSum(graph, h, pool, Phase::kBackward);
  for (size_t k = 0; k < versions; ++k) {
    const auto appended = AppendCarryingNode(
        graph, BuiltinOps(),
        {.op = "sgd_update_plain", .inputs = {pool, g, rate}, .phase = Phase::kBackward}, {pool});
    THIMBLE_CHECK(appended.ok(), "{}", appended.error().message);
    pool = LastVersion(graph, pool);
    g = AppendSum(graph, g, pool, Phase::kBackward);
  }
  graph.outputs = {g};
  return graph;
}

// Small whole numbers and halves: sums and products of them are exact.
std::vector<float> Numbers(int64_t count, int start) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>((start + 5 * i) % 17 - 8));
  }
  return numbers;
}

struct PoolResult {
  std::vector<float> output;
  std::vector<float> pool;
  friend bool operator==(const PoolResult&, const PoolResult&) = default;
};

// Runs the steps with the references, which are independent of memory placement.
PoolResult Expected(const Graph& graph, int steps) {
  std::vector<float> pool = Numbers(kElements, 3);
  std::vector<ReferenceTensor<double>> values;
  for (int step = 0; step < steps; ++step) {
    values.assign(graph.values.size(), {});
    const auto set = [&](const char* name, const std::vector<float>& numbers) {
      values[graph.Find(name).index()].numbers.assign(numbers.begin(), numbers.end());
    };
    set("x", Numbers(kElements, step));
    set("rate", {0.5F});
    set("pool", pool);
    RunReferenceGraph<double>(graph, BuiltinOps(), values);
    const auto& last = values[LastVersion(graph, graph.Find("pool")).index()].numbers;
    pool.assign(last.begin(), last.end());
  }
  const auto& output = values[graph.outputs[0].index()].numbers;
  return {{output.begin(), output.end()}, pool};
}

PoolResult RunSteps(Executor& executor, const Graph& graph, int steps) {
  const auto floats = [](const std::vector<std::byte>& bytes) {
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  };
  const std::vector<float> start = Numbers(kElements, 3);
  executor.WriteNow(executor.View(0, "pool"), std::as_bytes(std::span(start)));
  std::vector<std::byte> output(kElements * sizeof(float));
  for (int step = 0; step < steps; ++step) {
    executor.Prepare(0);
    const std::vector<float> x = Numbers(kElements, step);
    executor.WriteNow(executor.View(0, "x"), std::as_bytes(std::span(x)));
    WriteNumber(executor, executor.View(0, "rate"), 0.5F);
    executor.Run(0);
    executor.ReadNow(executor.View(0, graph.value(graph.outputs[0]).name), output);
  }
  executor.FetchResidents();
  const auto pool = executor.ResidentBytes("pool");
  executor.ScanArena();
  EXPECT_THAT(executor.audit().faults(), IsEmpty());
  EXPECT_EQ(executor.audit().measured_peak_bytes(), executor.planned_peak_bytes());
  return {floats(output), floats({pool.begin(), pool.end()})};
}

PlanOptions Asking(const char* recompute, int threads) {
  PlanOptions options{DeviceKind::kCpu, {threads, 1 << 18}, {}};
  options.recompute = ParseRecompute(recompute).value();
  return options;
}

TEST(VersionsTest, ResultsAreThoseOfTheReferences) {
  for (size_t versions = 1; versions <= 4; ++versions) {
    const Graph graph = PoolGraph(versions);
    const PoolResult expected = Expected(graph, 3);
    for (const char* strategy : kStrategies) {
      for (int threads : {1, 3}) {
        const Program program = PlanGraphs({{"pool", graph}}, Asking(strategy, threads));
        const auto executor = MakeExecutor(program, BuiltinOps());
        EXPECT_EQ(RunSteps(*executor, graph, 3), expected) << versions << " " << strategy;
        // Steps in another order, as far as their bytes allow.
        const auto device = Executor::CreateOn(
            std::make_unique<RecordingDevice>(program.arena_bytes), program, BuiltinOps());
        EXPECT_EQ(RunSteps(**device, graph, 3), expected) << versions << " " << strategy;
      }
    }
  }
}

// A step that makes a version waits for the readers of the previous one; readers of the new one
// wait for it.
TEST(VersionsTest, StepsWaitForTheVersionsTheyTouch) {
  Graph graph;
  const ValueId x = AddValue(graph, "x", {kElements}, Role::kInput);
  const ValueId rate = AddValue(graph, "rate", {1}, Role::kInput);
  ValueId pool = AddValue(graph, "pool", {kElements}, Role::kParameter);
  for (int k = 0; k < 2; ++k) {
    graph.outputs.push_back(AppendSum(graph, x, pool, Phase::kForward));
    graph.outputs.push_back(AppendSum(graph, x, pool, Phase::kForward));
    ASSERT_TRUE(AppendCarryingNode(graph, BuiltinOps(),
                                   {.op = "sgd_update_plain", .inputs = {pool, x, rate}}, {pool})
                    .ok());
    pool = LastVersion(graph, pool);
  }
  PlanOptions options;
  options.skipped_passes = {"order"};
  const Program program = PlanGraphs({{"pool", graph}}, options);
  RecordingDevice device(program.arena_bytes);
  ThreadPool threads(1);
  const BoundPlan bound(program.plans[0], BuiltinOps(), device, threads);
  const auto after = [&](size_t group) {
    const auto groups = bound.After(group);
    return std::vector<size_t>(groups.begin(), groups.end());
  };
  ASSERT_EQ(bound.groups().size(), 6U);
  EXPECT_THAT(after(1), IsEmpty());
  EXPECT_THAT(after(2), ElementsAre(1, 0));
  EXPECT_THAT(after(3), ElementsAre(2));
  EXPECT_THAT(after(4), ElementsAre(2));
  EXPECT_THAT(after(5), ElementsAre(4, 3));
}

class UpdateInBackwardTest : public testing::Test {
 protected:
  struct Outcome {
    std::vector<float> losses;
    ResidentContents residents;
  };
  // Three steps of training on the network of SmallTraining.
  static Outcome Train(SmallTraining training) {
    Outcome outcome;
    for (uint32_t step = 0; step < 3; ++step) outcome.losses.push_back(training.Run(kTrain, step));
    outcome.residents = training.Residents();
    training.executor().ScanArena();
    EXPECT_THAT(training.executor().audit().faults(), IsEmpty());
    EXPECT_EQ(training.executor().audit().measured_peak_bytes(),
              training.executor().planned_peak_bytes());
    return outcome;
  }
  static Program Planned(const PlanOptions& options) {
    const Graph graph =
        UpdateInBackward(TrainingGraph("wrn-10-1", SmallTraining::kBatch, TinyImages()));
    return PlanGraphs({{"train", graph}}, options);
  }
  static void ExpectSame(const Outcome& actual, const Outcome& expected) {
    EXPECT_EQ(actual.losses, expected.losses);
    EXPECT_TRUE(actual.residents == expected.residents);
  }
};

TEST_F(UpdateInBackwardTest, SameBitsAsUpdatesAfterBackward) {
  const Outcome expected = Train(SmallTraining(1));
  for (const char* strategy : kStrategies) {
    for (int threads : {1, 3}) {
      SCOPED_TRACE(strategy);
      const Program program = Planned(Asking(strategy, threads));
      ExpectSame(Train(SmallTraining(MakeExecutor(program, BuiltinOps()))), expected);
      auto device = std::make_unique<RecordingDevice>(program.arena_bytes);
      ExpectSame(Train(SmallTraining(
                     Executor::CreateOn(std::move(device), program, BuiltinOps()).value())),
                 expected);
    }
  }
}

TEST_F(UpdateInBackwardTest, SameBitsWithoutAnyPass) {
  const Outcome expected = Train(SmallTraining(1));
  for (const char* pass : {"order", "in-place", "placement"}) {
    SCOPED_TRACE(pass);
    PlanOptions options = Asking("blocks", 2);
    options.skipped_passes = {pass};
    ExpectSame(Train(SmallTraining(MakeExecutor(Planned(options), BuiltinOps()))), expected);
  }
}

}  // namespace
}  // namespace thimble
