#include "tests/support/residual_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "thimble/base/check.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/exec/executor.h"
#include "thimble/grad/training_graph.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/initialize.h"

namespace thimble {

NetworkBuilder::Built MakeResidualNetwork() {
  NetworkBuilder net(BuiltinOps(), Mode::kTrain);
  ValueId x = net.Input("x", {3, 6, 6, 5}, DType::kF32);
  x = net.Conv("conv", x, {.out_channels = 20, .padding = 1});
  ValueId y = net.Relu(net.BatchNorm("bn1", x));
  y = net.Conv("conv1", y, {.out_channels = 20, .padding = 1});
  y = net.Conv("conv2", net.Relu(net.BatchNorm("bn2", y)), {.out_channels = 20, .padding = 1});
  x = net.Add(y, x);
  // The shortcut passes the gradient of the sum on to the norm's input, which then gets another
  // part.
  x = net.Add(net.BatchNorm("bn3", x), x);
  x = net.Relu(net.BatchNorm("bn4", x));
  const ValueId labels = net.Input(kLabelsInput, {3}, DType::kI32);
  net.SoftmaxCrossEntropy(net.Linear("fc", net.GlobalAveragePool(x), 4), labels);
  auto built = std::move(net).Finish();
  THIMBLE_CHECK(built.ok(), "{}", built.error().message);
  return std::move(built).value();
}

std::map<std::string, std::vector<std::byte>> TrainThreeSteps(Graph graph,
                                                              const std::vector<InitRule>& inits,
                                                              const OpRegistry& ops) {
  const auto appended = AppendUpdate(graph, ops, graph.Find(kLossOutput), {});
  THIMBLE_CHECK(appended.ok(), "{}", appended.error().message);
  auto program = PlanProgram({{"train", graph}}, ops, {}, {});
  THIMBLE_CHECK(program.ok(), "{}", program.error().message);
  auto executor = Executor::Create(std::move(program).value(), ops).value();
  InitializeResidents(*executor, inits, /*seed=*/5);
  for (int step = 0; step < 3; ++step) {
    executor->Prepare(0);
    float number = static_cast<float>(step);
    std::vector<float> xs(static_cast<size_t>(executor->View(0, "x").shape.elements()));
    for (float& x : xs) x = std::sin(number += 1.7F);
    const std::vector<int32_t> labels(3, step);
    executor->WriteNow(executor->View(0, "x"), std::as_bytes(std::span(xs)));
    executor->WriteNow(executor->View(0, kLabelsInput), std::as_bytes(std::span(labels)));
    WriteNumber(*executor, executor->View(0, kLossWeightInput), 1.0F);
    WriteNumber(*executor, executor->View(0, kLearningRateInput), 0.1F);
    executor->Run(0);
  }
  executor->FetchResidents();
  std::map<std::string, std::vector<std::byte>> contents;
  for (const Resident& resident : executor->program().residents.residents) {
    const auto bytes = executor->ResidentBytes(resident.name);
    contents[resident.name].assign(bytes.begin(), bytes.end());
  }
  return contents;
}

size_t CountOps(const Graph& graph, std::string_view op) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                           [&](const Node& node) { return node.op == op; }));
}

void ExpectSameTraining(const Graph& rewritten, const NetworkBuilder::Built& built) {
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    EXPECT_EQ(TrainThreeSteps(rewritten, built.inits, BuiltinOps()),
              TrainThreeSteps(built.graph, built.inits, BuiltinOps()))
        << target;
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

}  // namespace thimble
