#include "thimble/graph/append_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"
#include "thimble/graph/verify_graph.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class AppendNodeTest : public testing::Test {
 protected:
  NodeSpec Spec(std::string_view op, std::vector<ValueId> inputs) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    return spec;
  }
  // The message for a node that must be rejected without changing the graph.
  std::string ErrorOf(const NodeSpec& spec) {
    const Graph before = graph_;
    const auto outputs = AppendNode(graph_, ops_, spec);
    EXPECT_FALSE(outputs.ok());
    EXPECT_EQ(graph_, before);
    return outputs.ok() ? "" : outputs.error().message;
  }

  OpRegistry ops_ = ToyOps();
  Graph graph_;
  ValueId x_ = AddInput(graph_, "x", {2, 3});
};

TEST_F(AppendNodeTest, InfersShapesAndCompletesAttributes) {
  NodeSpec spec = Spec("scale", {x_});
  spec.layer = "head";
  spec.phase = Phase::kBackward;
  spec.output_role = Role::kGradient;
  const auto outputs = AppendNode(graph_, ops_, spec);
  ASSERT_TRUE(outputs.ok());
  const Value& y = graph_.value(outputs->front());
  EXPECT_EQ(y.name, "head.y");
  EXPECT_EQ(y.shape, (Shape{2, 3}));
  EXPECT_EQ(y.role, Role::kGradient);
  const Node& node = graph_.node(y.producer);
  EXPECT_EQ(node.attributes.Float("factor"), 2.0);
  EXPECT_EQ(node.phase, Phase::kBackward);
  EXPECT_EQ(node.layer, "head");
}

TEST_F(AppendNodeTest, NamesOutputsAsToldAndUniquely) {
  NodeSpec spec = Spec("scale", {x_});
  spec.output_names = {"x"};
  const auto outputs = AppendNode(graph_, ops_, spec);
  EXPECT_EQ(graph_.value(outputs->front()).name, "x.2");
  EXPECT_EQ(graph_.value(AppendToy(graph_, ops_, "scale", {x_})).name, "scale.y");
}

TEST_F(AppendNodeTest, OutputsHaveTheTypeOfTheirPort) {
  EXPECT_EQ(graph_.value(AppendToy(graph_, ops_, "count", {x_})).dtype, DType::kI32);
}

TEST_F(AppendNodeTest, NodeShapesAreThoseOfItsValues) {
  AppendToy(graph_, ops_, "scale", {x_}, {{"factor", 3.0}});
  const NodeShapes shapes(graph_, graph_.nodes[0]);
  EXPECT_EQ(shapes.call().inputs[0], (Shape{2, 3}));
  EXPECT_EQ(shapes.call().outputs[0], (Shape{2, 3}));
  EXPECT_EQ(shapes.call().attributes.Float("factor"), 3.0);
}

TEST_F(AppendNodeTest, ResultPassesTheVerifier) {
  AppendToy(graph_, ops_, "multiply", {x_, AppendToy(graph_, ops_, "scale", {x_})});
  EXPECT_TRUE(VerifyGraph(graph_, ops_).ok());
}

TEST_F(AppendNodeTest, VersionsAreNamedAfterTheFirst) {
  const ValueId pool = AddInput(graph_, "pool", {2, 3}, Role::kState);
  for (const char* name : {"pool.next", "pool.next.2", "pool.next.3"}) {
    const ValueId newest = LastVersion(graph_, pool);
    ASSERT_TRUE(AppendCarryingNode(graph_, ops_, Spec("scale", {newest}), {newest}).ok());
    const Value& next = graph_.value(LastVersion(graph_, pool));
    EXPECT_EQ(next.name, name);
    EXPECT_EQ(next.role, Role::kState);
  }
  EXPECT_EQ(graph_.carries.size(), 3U);
  EXPECT_TRUE(VerifyGraph(graph_, ops_).ok());
}

TEST_F(AppendNodeTest, RejectsUnknownOp) {
  EXPECT_THAT(ErrorOf(Spec("twirl", {x_})), HasSubstr("twirl: unknown op"));
}

TEST_F(AppendNodeTest, RejectsWrongNumberOfInputs) {
  EXPECT_THAT(ErrorOf(Spec("multiply", {x_})), HasSubstr("got 1 inputs, expected 2"));
  EXPECT_THAT(ErrorOf(Spec("scale", {})), HasSubstr("got 0 inputs, expected 1"));
}

TEST_F(AppendNodeTest, RejectsWrongType) {
  const ValueId integers = AppendToy(graph_, ops_, "count", {x_});
  EXPECT_THAT(ErrorOf(Spec("scale", {integers})), HasSubstr("input 'x' is i32, expected f32"));
}

TEST_F(AppendNodeTest, RejectsUnknownAttribute) {
  NodeSpec spec = Spec("scale", {x_});
  spec.attributes = {{"stride", int64_t{1}}};
  EXPECT_THAT(ErrorOf(spec), HasSubstr("no attribute 'stride'"));
}

TEST_F(AppendNodeTest, RejectsAttributeOfWrongType) {
  NodeSpec spec = Spec("scale", {x_});
  spec.attributes = {{"factor", int64_t{1}}};
  EXPECT_THAT(ErrorOf(spec), HasSubstr("attribute 'factor' has the wrong type"));
}

TEST_F(AppendNodeTest, NamesTheLayerWhereShapesDiffer) {
  NodeSpec spec = Spec("multiply", {x_, AddInput(graph_, "z", {3, 2})});
  spec.layer = "block1.gate";
  EXPECT_EQ(ErrorOf(spec), "layer 'block1.gate' (multiply): shapes differ");
}

TEST_F(AppendNodeTest, RejectsResultsOfOverflowingSize) {
  const ValueId huge = AddInput(graph_, "huge", {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_THAT(ErrorOf(Spec("scale", {huge})), HasSubstr("is too large"));
}

}  // namespace
}  // namespace thimble
