#include "thimble/plan/recompute/chain.h"

#include <gtest/gtest.h>

#include "tests/plan/recompute/toy_chain.h"

namespace thimble {
namespace {

using Kind = ChainValue::Kind;

TEST(Chain, StagesAndTheirBackwardSteps) {
  const toy::ToyChain toy;
  const Chain& chain = toy.chain;
  ASSERT_EQ(chain.num_stages, 4U);
  // Each step belongs to the first stage that reads its forward value: c in 3, b in 2, a in 1.
  EXPECT_EQ(chain.stage_of_backward, (std::vector<size_t>{3, 2, 1}));
  EXPECT_EQ(chain.ForwardOf(2), (LiveRange{2, 3}));
  EXPECT_EQ(chain.BackwardOf(3), (LiveRange{0, 1}));
  EXPECT_EQ(chain.BackwardOf(0), (LiveRange{3, 3}));
  EXPECT_EQ(chain.update.size(), 1U);
}

TEST(Chain, ValuesKnowWhereTheyCross) {
  const toy::ToyChain toy;
  const Chain& chain = toy.chain;
  EXPECT_TRUE(chain.Crosses(toy.a, 0));
  EXPECT_TRUE(chain.Crosses(toy.a, 1));
  EXPECT_FALSE(chain.Crosses(toy.a, 2));
  EXPECT_FALSE(chain.Crosses(toy.b, 0));
  EXPECT_TRUE(chain.Crosses(toy.c, 2));
  EXPECT_FALSE(chain.Crosses(toy.e, 3));
  EXPECT_EQ(chain.values[toy.a.index()].next_reader, 1U);
  EXPECT_EQ(chain.values[toy.e.index()].next_reader, ChainValue::kNoStage);
  EXPECT_EQ(chain.values[toy.b.index()].backward_end, 2U);
  EXPECT_EQ(chain.values[toy.e.index()].backward_end, 0U);
}

TEST(Chain, WhatOthersReadIsNeverDropped) {
  toy::ToyChain toy;
  EXPECT_EQ(toy.chain.values[toy.a.index()].kind, Kind::kForward);
  EXPECT_EQ(toy.chain.values[toy.da.index()].kind, Kind::kBackward);
  EXPECT_EQ(toy.chain.values[toy.da.index()].last, toy.chain.backward.size());  // for the update
  toy.draft.graph.outputs = {toy.b};
  const Chain chain = MakeChain(toy.draft, toy::RandomGraphOps(), {}).value();
  EXPECT_EQ(chain.values[toy.b.index()].kind, Kind::kFixed);
}

TEST(Chain, SmallValuesAreNeverDropped) {
  const OpRegistry& ops = toy::RandomGraphOps();
  Graph graph;
  const ValueId x = toy::AddInput(graph, "x", Role::kInput, {1});
  NodeSpec spec{.op = "resize", .inputs = {x}, .attributes = {{"elements", int64_t{100000}}}};
  const ValueId large = AppendNode(graph, ops, spec).value()[0];
  spec.inputs = {large};
  spec.attributes = {{"elements", int64_t{100}}};
  const ValueId small = AppendNode(graph, ops, spec).value()[0];
  toy::Append(graph, ops, "copy", {small}, {"d"}, Phase::kBackward);
  const Chain chain = MakeChain(toy::MakeDraft(graph, ops), ops, {}).value();
  EXPECT_EQ(chain.values[large.index()].kind, Kind::kForward);
  EXPECT_EQ(chain.values[small.index()].kind, Kind::kFixed);
}

TEST(Chain, NeighboursAreJoinedWhereThereAreTooMany) {
  const toy::ToyChain toy;
  const Chain chain = MakeChain(toy.draft, toy::RandomGraphOps(), {}, 2).value();
  ASSERT_EQ(chain.num_stages, 2U);
  // One value crosses after a and after c, two after b: the first of the narrow cuts is kept.
  EXPECT_EQ(chain.stage_of_forward, (std::vector<size_t>{0, 1, 1, 1}));
}

TEST(Chain, WithoutBackwardThereAreNoStages) {
  const OpRegistry& ops = toy::RandomGraphOps();
  Graph graph;
  const ValueId x = toy::AddInput(graph, "x", Role::kInput, {4});
  toy::Append(graph, ops, "copy", {x}, {"y"});
  const Chain chain = MakeChain(toy::MakeDraft(graph, ops), ops, {}).value();
  EXPECT_EQ(chain.num_stages, 0U);
  EXPECT_EQ(chain.forward.size(), 1U);
}

// A norm whose statistics are kept is rebuilt from them, with less work than the first time.
TEST(Chain, NormsAreRebuiltFromTheirStatistics) {
  std::mt19937 random(3);
  Graph graph = toy::RandomNetwork(random, 6).Take(true);
  const PlanDraft draft = toy::MakeDraft(graph, BuiltinOps());
  const Chain chain = MakeChain(draft, BuiltinOps(), {}).value();
  int norms = 0;
  for (size_t f = 0; f < chain.forward.size(); ++f) {
    const Node& node = graph.node(chain.forward[f]);
    if (node.op != "batch_norm") {
      EXPECT_EQ(chain.reruns[f].op, node.op);
      continue;
    }
    ++norms;
    EXPECT_EQ(chain.reruns[f].op, "batch_norm_eval");
    EXPECT_EQ(chain.reruns[f].inputs,
              (std::vector<ValueId>{node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[1],
                                    node.outputs[2]}));
    EXPECT_EQ(chain.reruns[f].outputs, std::vector<ValueId>{node.outputs[0]});
    EXPECT_EQ(chain.reruns[f].attributes.Int("relu"), node.attributes.Int("relu"));
  }
  EXPECT_GT(norms, 0);
}

TEST(Chain, WorkIsFlopsOrBytes) {
  const toy::ToyChain toy;
  // No flops; 64 bytes in, 64 out.
  EXPECT_EQ(WorkOf(toy.graph(), toy::RandomGraphOps(), toy.graph().node(toy.chain.forward[1])),
            1024);
}

}  // namespace
}  // namespace thimble
