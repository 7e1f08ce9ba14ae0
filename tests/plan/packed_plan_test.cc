// Plans with packed values: they take no memory of their own, and the verifier follows the versions
// of each although their places depend on data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/verify_plan.h"
#include "thimble/program/sparsity/pack_graph.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class PackedPlanTest : public testing::Test {
 protected:
  // Updates in backward: weights have two versions while backward still runs.
  static Graph Trained() {
    UpdateSpec spec{.in_backward = true};
    spec.sparsity.fraction = 0.5;
    Graph graph = MakeNetwork("wrn-10-1", 2, Mode::kTrain, TinyImages()).graph;
    EXPECT_TRUE(AppendUpdate(graph, BuiltinOps(), graph.Find("loss"), spec).ok());
    return graph;
  }
  static Graph Packed(Graph graph) {
    const auto tensors = ChooseSparseTensors(graph, BuiltinOps(), 0.5, "").value();
    FuseGradientUses(graph, tensors);
    PackTensors(graph, tensors);
    return graph;
  }
  std::string Error() const {
    const auto verified = VerifyPlan(BuiltinOps(), plan_);
    return verified.ok() ? "" : verified.error().message;
  }
  size_t StepOf(std::string_view op, std::string_view layer) const {
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      const Node& node = plan_.graph.node(plan_.steps[step].node);
      if (node.op == op && node.layer == layer) return step;
    }
    ADD_FAILURE() << "no " << op << " in " << layer;
    return 0;
  }

  Plan plan_ = PlanGraph(Packed(Trained()));
};

TEST_F(PackedPlanTest, PoolsAreTheResidents) {
  EXPECT_EQ(Error(), "");
  EXPECT_NE(plan_.residents.Find(kSparseWeights), nullptr);
  EXPECT_NE(plan_.residents.Find(kSparsePattern), nullptr);
  EXPECT_EQ(plan_.residents.Find("block1.layer.0.conv1.weight"), nullptr);
  EXPECT_LT(plan_.arena_bytes, PlanGraph(Trained()).arena_bytes);
}

TEST_F(PackedPlanTest, AValueOutsideItsPoolIsFound) {
  const ValueId weight = plan_.graph.Find("block1.layer.0.conv1.weight");
  const ValueId other = plan_.graph.Find(kSparsePattern);
  plan_.values[weight.index()].buffer = plan_.values[other.index()].buffer;
  EXPECT_THAT(Error(), HasSubstr("'block1.layer.0.conv1.weight' is not in the buffer of its pool"));
}

// The input gradient of a layer would read weights that are updated already.
TEST_F(PackedPlanTest, AReaderAfterTheUpdateIsFound) {
  const std::string layer = "block2.layer.0.conv2";
  const size_t update = StepOf("conv2d_sgd_update", layer);
  const size_t reader = StepOf("conv2d_grad_input", layer);
  ASSERT_LT(reader, update);
  std::swap(plan_.steps[reader], plan_.steps[update]);
  EXPECT_THAT(Error(), HasSubstr("block2.layer.0.conv2"));
}

// The update of another layer does not change them.
TEST_F(PackedPlanTest, UpdatesOfOtherLayersDoNotMatter) {
  const ValueId first = plan_.graph.Find("block1.layer.0.conv1.weight");
  const ValueId second = plan_.graph.Find("block1.layer.0.conv2.weight");
  EXPECT_EQ(plan_.values[first.index()].buffer, plan_.values[second.index()].buffer);
  EXPECT_LT(StepOf("conv2d_sgd_update", "block3.layer.0.conv2"),
            StepOf("conv2d_grad_input", "block1.layer.0.conv2"));
}

}  // namespace
}  // namespace thimble
