#include "thimble/plan/passes/in_place.h"

#include <gtest/gtest.h>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"

namespace thimble::toy {
namespace {

// Toy ops: mix may overwrite either input, sum2 its first, copy none.
class InPlaceTest : public testing::Test {
 protected:
  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Phase phase = Phase::kForward) {
    return Append(graph_, RandomGraphOps(), op, std::move(inputs), {}, phase)[0];
  }
  std::vector<ValueId> Share() {
    return ShareInPlace(MakeDraft(graph_, RandomGraphOps()), RandomGraphOps());
  }
  bool Together(ValueId a, ValueId b) {
    const auto storage = Share();
    return storage[a.index()] == storage[b.index()];
  }

  Graph graph_;
  ValueId x_ = AddInput(graph_, "x", Role::kInput, {16});
  ValueId w_ = AddInput(graph_, "w", Role::kParameter, {16});
  ValueId a_ = Op("copy", {x_});
};

TEST_F(InPlaceTest, OverwritesAnInputThatIsReadNoMore) {
  const ValueId y = Op("mix", {a_, w_});
  EXPECT_TRUE(Together(y, a_));
}

TEST_F(InPlaceTest, ChainsShareOneBuffer) {
  const ValueId b = Op("mix", {a_, w_});
  const ValueId c = Op("mix", {b, w_});
  const ValueId d = Op("mix", {c, w_});
  const auto storage = Share();
  for (ValueId value : {b, c, d}) EXPECT_EQ(storage[value.index()], a_);
}

TEST_F(InPlaceTest, TakesTheSecondInputWhereTheFirstIsStillNeeded) {
  const ValueId b = Op("copy", {x_});
  const ValueId y = Op("mix", {a_, b});
  Op("copy", {a_});
  EXPECT_FALSE(Together(y, a_));
  EXPECT_TRUE(Together(y, b));
}

TEST_F(InPlaceTest, OneValueAtBothInputsMayBeOverwritten) {
  const ValueId y = Op("mix", {a_, a_});
  EXPECT_TRUE(Together(y, a_));
}

TEST_F(InPlaceTest, OneValueAtAPortThatDoesNotAllowIt) {
  const ValueId y = Op("sum2", {a_, a_});  // over a, not over b
  EXPECT_FALSE(Together(y, a_));
}

TEST_F(InPlaceTest, OneBufferAtAPortThatDoesNotAllowIt) {
  const ValueId b = Op("mix", {a_, w_});
  const ValueId y = Op("sum2", {w_, b});
  EXPECT_FALSE(Together(y, b));
  EXPECT_TRUE(Together(a_, b));
}

TEST_F(InPlaceTest, KeepsWhatIsReadLater) {
  const ValueId y = Op("mix", {a_, w_});
  Op("copy", {a_});
  EXPECT_FALSE(Together(y, a_));
}

TEST_F(InPlaceTest, KeepsABufferWhoseOtherValueIsReadLater) {
  const ValueId b = Op("mix", {a_, w_});  // overwrites a
  const ValueId c = Op("mix", {b, w_});
  Op("copy", {b});
  EXPECT_TRUE(Together(a_, b));
  EXPECT_FALSE(Together(b, c));
}

TEST_F(InPlaceTest, KeepsInputsAndParameters) {
  const ValueId y = Op("mix", {x_, w_});
  EXPECT_FALSE(Together(y, x_));
  EXPECT_FALSE(Together(y, w_));
}

TEST_F(InPlaceTest, KeepsOutputsOfTheGraph) {
  graph_.outputs = {a_};
  const ValueId y = Op("mix", {a_, w_});
  const ValueId z = Op("copy", {y});
  EXPECT_FALSE(Together(y, a_));
  EXPECT_FALSE(Together(z, a_));
}

TEST_F(InPlaceTest, KeepsAnOutputOfTheGraphThatTheLastStepReads) {
  graph_.outputs = {a_};
  const ValueId y = Op("mix", {a_, w_});
  EXPECT_FALSE(Together(y, a_));
}

TEST_F(InPlaceTest, KeepsAnOutputThatWasComputedInPlace) {
  const ValueId b = Op("mix", {a_, w_});
  graph_.outputs = {b};
  const ValueId c = Op("mix", {b, w_});
  EXPECT_TRUE(Together(a_, b));
  EXPECT_FALSE(Together(b, c));
}

TEST_F(InPlaceTest, NeverForOpsThatDoNotAllowIt) {
  const ValueId y = Op("copy", {a_});
  EXPECT_FALSE(Together(y, a_));
}

TEST_F(InPlaceTest, NeverForAnotherSize) {
  const ValueId longer = AddInput(graph_, "longer", Role::kInput, {17});
  const ValueId b = Op("copy", {longer});
  const ValueId y = Op("sum2", {a_, b});  // shaped like a
  EXPECT_TRUE(Together(y, a_));
  const ValueId z = Op("mix", {y, b});
  EXPECT_TRUE(Together(z, y));
  EXPECT_FALSE(Together(z, b));
}

TEST_F(InPlaceTest, TwoOutputsDoNotTakeOneInput) {
  OpRegistry ops;
  ops.Add(OpDef("twice")
              .Input("x")
              .Output("y")
              .Output("z")
              .ShapeRule([](const OpCall& call) -> Result<std::vector<Shape>> {
                return std::vector<Shape>{call.inputs[0], call.inputs[0]};
              })
              .OutputMayReuse("y", "x")
              .OutputMayReuse("z", "x")
              .Kernels(MakeKernels<CopyKernel>()));
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {16});
  const auto first = Append(graph, ops, "twice", {x}, {});
  const auto second = Append(graph, ops, "twice", {first[0]}, {});
  const auto storage = ShareInPlace(MakeDraft(graph, ops), ops);
  EXPECT_EQ(storage[second[0].index()], first[0]);
  EXPECT_EQ(storage[second[1].index()], second[1]);
}

TEST_F(InPlaceTest, FollowsTheOrderOfTheDraft) {
  const ValueId y = Op("mix", {a_, w_});
  const ValueId z = Op("copy", {a_});
  PlanDraft draft = MakeDraft(graph_, RandomGraphOps());
  draft.order = {graph_.value(a_).producer, graph_.value(z).producer, graph_.value(y).producer};
  const auto storage = ShareInPlace(draft, RandomGraphOps());
  EXPECT_EQ(storage[y.index()], a_);
}

TEST_F(InPlaceTest, CountsWhatItDid) {
  Op("mix", {Op("mix", {a_, w_}), w_});
  const ValueId m = AddInput(graph_, "m", Role::kState, {16});
  AppendUpdate(graph_, RandomGraphOps(), w_, m, Op("copy", {x_}, Phase::kBackward));
  PlanDraft draft = MakeDraft(graph_, RandomGraphOps());
  const auto what = MakeInPlacePass()->Run(draft, RandomGraphOps(), {});
  ASSERT_TRUE(what.ok());
  EXPECT_EQ(*what, "2 values computed in place");  // carried values do not count
  EXPECT_EQ(draft.storage, Share());
}

}  // namespace
}  // namespace thimble::toy
