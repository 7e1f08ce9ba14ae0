// Bytes and work of parts of a chain, counted by hand; optimal_test.cc compares all of them with a
// second implementation.
#include "thimble/plan/recompute/stretches.h"

#include <gtest/gtest.h>

#include "tests/plan/recompute/toy_chain.h"

namespace thimble {
namespace {

constexpr size_t kOne = 64;  // bytes of a value

class StretchesTest : public ::testing::Test {
 protected:
  toy::ToyChain toy_;
  Stretches stretches_{toy_.graph(), toy::RandomGraphOps(), toy_.chain};
};

TEST_F(StretchesTest, GradientsThatWait) {
  EXPECT_EQ(stretches_.GradientBytes(3), 0U);
  EXPECT_EQ(stretches_.GradientBytes(2), kOne);  // dc
  EXPECT_EQ(stretches_.GradientBytes(1), kOne);  // db
  EXPECT_EQ(stretches_.GradientBytes(0), kOne);  // da, for the update
}

TEST_F(StretchesTest, EntriesHoldWhatIsStillNeeded) {
  // In the first pass stage 2 will run: it reads a and b.
  EXPECT_EQ(stretches_.Entry(0, 2, 3).bytes, 2 * kOne);
  EXPECT_EQ(stretches_.Entry(1, 2, 3).bytes, kOne);  // a is not made in [1, 2)
  // Later, backward of stage 2 reads only b, and c is not needed again.
  EXPECT_EQ(stretches_.Entry(0, 2, 2).bytes, kOne);
  EXPECT_EQ(stretches_.Entry(0, 1, 1).count, 1U);
  EXPECT_EQ(stretches_.Entry(0, 3, 3).bytes, kOne);  // c
}

TEST_F(StretchesTest, ForwardRunsWhatLeadsThere) {
  // The whole first pass: while c overwrites b, a and b are alive.
  EXPECT_EQ(stretches_.ForwardSteps(0, 3, 3).size(), 3U);
  EXPECT_EQ(stretches_.Forward(0, 3, 3).bytes, 2 * kOne);
  EXPECT_EQ(stretches_.Forward(0, 3, 3).work, 0);
  // Running again for b: a and b are both alive while b is made.
  const auto steps = stretches_.ForwardSteps(0, 2, 2);
  EXPECT_EQ(steps, (std::vector<ChainStep>{{false, 0}, {false, 1}}));
  EXPECT_EQ(stretches_.Forward(0, 2, 2).bytes, 2 * kOne);
  EXPECT_EQ(stretches_.Forward(0, 2, 2).work,
            toy_.chain.reruns[0].work + toy_.chain.reruns[1].work);
}

// The example in stretches.h, step by step.
TEST_F(StretchesTest, TheExampleOfTheHeader) {
  EXPECT_EQ(stretches_.Entry(0, 3, 3).bytes, kOne);
  EXPECT_EQ(stretches_.Forward(0, 3, 3).bytes, 2 * kOne);
  EXPECT_EQ(stretches_.Entry(0, 2, 2).bytes, kOne);
  EXPECT_EQ(stretches_.Forward(0, 2, 2).bytes, 2 * kOne);
  EXPECT_EQ(stretches_.BackwardSteps(2, false), (std::vector<ChainStep>{{true, 1}}));
  EXPECT_EQ(stretches_.ForwardSteps(0, 1, 1), (std::vector<ChainStep>{{false, 0}}));
  EXPECT_EQ(stretches_.Entry(0, 1, 1).bytes, kOne);
  EXPECT_EQ(stretches_.BackwardSteps(1, false), (std::vector<ChainStep>{{true, 2}}));
  EXPECT_TRUE(stretches_.BackwardSteps(0, false).empty());
  EXPECT_EQ(stretches_.SavedBytes(1, 3), kOne);
}

TEST_F(StretchesTest, SavingKeepsWhatBackwardReads) {
  EXPECT_EQ(stretches_.SavedBytes(0, 3), kOne);
  EXPECT_EQ(stretches_.SavedBytes(3, 3), 0U);  // nobody reads e
  EXPECT_EQ(stretches_.ForwardSavingSteps(1, 2), (std::vector<ChainStep>{{false, 1}}));
}

TEST_F(StretchesTest, BackwardOverwritesWhatItIsTheLastToRead) {
  // db overwrites dc; b, which belongs to the caller, is released: only dc was alive in addition.
  EXPECT_EQ(stretches_.Backward(2, true).bytes, kOne);
  EXPECT_EQ(stretches_.Backward(2, false).work, 0);
  EXPECT_EQ(stretches_.BackwardSteps(0, false).size(), 0U);
}

TEST(Stretches, BackwardRebuildsWhatItsStageMakes) {
  const OpRegistry& ops = toy::RandomGraphOps();
  Graph graph;
  const ValueId x = toy::AddInput(graph, "x", Role::kInput, {16});
  const ValueId a = toy::Append(graph, ops, "copy", {x}, {"a"})[0];
  const ValueId b = toy::Append(graph, ops, "copy", {a}, {"b"})[0];
  const ValueId c = toy::Append(graph, ops, "copy", {a}, {"c"})[0];
  const ValueId dc = toy::Append(graph, ops, "copy", {c}, {"dc"}, Phase::kBackward)[0];
  toy::Append(graph, ops, "mix", {dc, b}, {"d"}, Phase::kBackward);
  const PlanDraft draft = toy::MakeDraft(graph, ops);
  const Chain chain = MakeChain(draft, ops, {}).value();
  const Stretches stretches(graph, ops, chain);
  // b has no reader in forward: its stage rebuilds it for its backward step.
  EXPECT_EQ(stretches.BackwardSteps(1, false), (std::vector<ChainStep>{{false, 1}, {true, 1}}));
  EXPECT_EQ(stretches.Backward(1, false).work, chain.reruns[1].work);
  EXPECT_EQ(stretches.BackwardSteps(1, true), (std::vector<ChainStep>{{true, 1}}));
  EXPECT_EQ(stretches.Backward(1, true).work, 0);
  EXPECT_EQ(stretches.Backward(1, true).bytes, 2 * kOne);  // dc, b
}

}  // namespace
}  // namespace thimble
