// The gradient of a shortcut around a batch norm is added by the norm's own gradient op: no add
// node, the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_graphs.h"
#include "tests/support/residual_training.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

std::ptrdiff_t CountBackward(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.op == op && node.phase == Phase::kBackward;
  });
}

// The built-in ops, but with add nodes for the sums of batch norm.
OpRegistry OpsWithoutGradAdd() {
  OpRegistry ops;
  for (OpDef op : BuiltinOps().ops()) {
    if (op.name() == "batch_norm") {
      op.Gradient([](GradientBuilder& g) {
        const auto gradients = g.Emit("batch_norm_grad",
                                      {g.In("x"), g.In("gamma"), g.In("beta"), g.Out("mean"),
                                       g.Out("variance"), g.GradOf("y")},
                                      g.attributes());
        g.AddTo("x", gradients[0]);
        g.AddTo("gamma", gradients[1]);
        g.AddTo("beta", gradients[2]);
      });
    }
    ops.Add(std::move(op));
  }
  return ops;
}

TEST(ResidualGradientTest, BatchNormAddsWhatCamePastIt) {
  const Graph graph = TrainingGraph("wrn-16-2", 2);
  EXPECT_TRUE(VerifyGraph(graph, BuiltinOps()).ok());
  // One block of each group keeps its shape and has a plain shortcut. In the others the shortcut
  // starts after the norm, where two convolutions read the same value.
  EXPECT_EQ(CountBackward(graph, "batch_norm_grad_add"), 3);
  EXPECT_EQ(CountBackward(graph, "batch_norm_grad"), 10);
  EXPECT_EQ(CountBackward(graph, "add"), 3);
}

TEST(ResidualGradientTest, TheSumIsTheGradientOfItsInput) {
  const Graph graph = TrainingGraph("wrn-16-2", 2);
  for (const Node& node : graph.nodes) {
    if (node.op != "batch_norm_grad_add") continue;
    const Value& dx = graph.value(node.outputs[0]);
    EXPECT_EQ(dx.gradient_of, node.inputs[0]) << dx.name;
    EXPECT_EQ(dx.role, Role::kGradient);
  }
}

TEST(ResidualGradientTest, TrainsToTheSameBitsOnEveryTarget) {
  const auto built = MakeResidualNetwork();
  const OpRegistry plain = OpsWithoutGradAdd();
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    EXPECT_EQ(TrainThreeSteps(built.graph, built.inits, BuiltinOps()),
              TrainThreeSteps(built.graph, built.inits, plain))
        << target;
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
}

}  // namespace
}  // namespace thimble
