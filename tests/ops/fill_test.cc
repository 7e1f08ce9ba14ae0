#include <gtest/gtest.h>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/graph/append_node.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {

std::vector<OpCase> FillCases() {
  return {{.op = "fill", .inputs = {}, .attributes = {{"value", 1.0}}},
          {.op = "fill", .inputs = {}, .attributes = {{"value", -0.1}}}};
}

OpCase Random_fill(CaseDraw& draw) {
  return {.op = "fill", .inputs = {}, .attributes = {{"value", 2 * draw.Fraction() - 1}}};
}

namespace {

TEST(Fill, WritesItsValue) {
  const auto outputs = RunOp({.op = "fill", .inputs = {}, .attributes = {{"value", 0.125}}}, {});
  EXPECT_EQ(outputs[0].floats, std::vector<float>{0.125});
}

TEST(Fill, RejectsInputs) {
  Graph graph;
  NodeSpec spec;
  spec.op = "fill";
  spec.inputs = {graph.AddValue({"x", Shape{1}, DType::kF32, Role::kInput, {}, {}})};
  EXPECT_FALSE(AppendNode(graph, BuiltinOps(), spec).ok());
}

TEST(Fill, RejectsIntegerValue) {
  Graph graph;
  NodeSpec spec;
  spec.op = "fill";
  spec.attributes = {{"value", int64_t{1}}};
  EXPECT_FALSE(AppendNode(graph, BuiltinOps(), spec).ok());
}

}  // namespace
}  // namespace thimble
