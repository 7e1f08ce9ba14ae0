#include "thimble/plan/draft.h"

#include <gtest/gtest.h>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "thimble/plan/passes/in_place.h"

namespace thimble::toy {
namespace {

class DraftTest : public testing::Test {
 protected:
  LiveRange LifeOfValue(std::string_view name) const {
    return ValueLiveRanges(draft_)[draft_.graph.Find(name).index()];
  }
  DraftBuffer Buffer(std::string_view name) const {
    for (const DraftBuffer& buffer : Buffers(draft_)) {
      if (buffer.name == name) return buffer;
    }
    ADD_FAILURE() << "no buffer '" << name << "'";
    return {};
  }

  PlanDraft draft_ = MakeDraft(MakeTrainingGraph(RandomGraphOps()), RandomGraphOps());
};

TEST_F(DraftTest, ValuesLiveFromTheirStepToTheirLastUse) {
  EXPECT_EQ(LifeOfValue("x"), (LiveRange{0, 1}));
  EXPECT_EQ(LifeOfValue("a"), (LiveRange{0, 2}));
  EXPECT_EQ(LifeOfValue("b"), (LiveRange{1, 4}));
  EXPECT_EQ(LifeOfValue("c"), (LiveRange{2, 5}));
  EXPECT_EQ(LifeOfValue("dw"), (LiveRange{4, 6}));
}

TEST_F(DraftTest, OutputsAndPersistentValuesLiveToTheEnd) {
  EXPECT_EQ(LifeOfValue("loss"), (LiveRange{3, 6}));
  EXPECT_EQ(LifeOfValue("w"), (LiveRange{0, 6}));
  EXPECT_EQ(LifeOfValue("m"), (LiveRange{0, 6}));
  EXPECT_EQ(LifeOfValue("w.next"), (LiveRange{5, 6}));
}

TEST_F(DraftTest, LivesFollowTheOrder) {
  std::swap(draft_.order[3], draft_.order[4]);
  EXPECT_EQ(LifeOfValue("loss"), (LiveRange{4, 6}));
  EXPECT_EQ(LifeOfValue("dw"), (LiveRange{3, 6}));
  EXPECT_EQ(LifeOfValue("b"), (LiveRange{1, 5}));
}

TEST_F(DraftTest, WhatNobodyReadsLivesForOneStep) {
  AddInput(draft_.graph, "unread", Role::kInput, {4});
  draft_.storage = SeparateStorage(draft_.graph);
  EXPECT_EQ(LifeOfValue("unread"), (LiveRange{0, 1}));
}

TEST_F(DraftTest, AGraphWithoutNodesHasItsInputs) {
  Graph graph;
  graph.outputs = {AddInput(graph, "x", Role::kInput, {4})};
  draft_ = MakeDraft(graph, RandomGraphOps());
  EXPECT_EQ(LifeOfValue("x"), (LiveRange{0, 1}));
  EXPECT_EQ(LivePeakBytes(draft_), 16U);
}

TEST_F(DraftTest, CarriedValuesLieWhereTheirPredecessorLies) {
  const Graph& graph = draft_.graph;
  const auto storage = SeparateStorage(graph);
  EXPECT_EQ(storage[graph.Find("w.next").index()], graph.Find("w"));
  EXPECT_EQ(storage[graph.Find("m.next").index()], graph.Find("m"));
  for (const char* name : {"x", "a", "b", "c", "loss", "dw", "w", "m"}) {
    EXPECT_EQ(storage[graph.Find(name).index()], graph.Find(name)) << name;
  }
  const DraftBuffer w = Buffer("w");
  EXPECT_TRUE(w.resident);
  EXPECT_EQ(w.values, (std::vector<ValueId>{graph.Find("w"), graph.Find("w.next")}));
}

TEST_F(DraftTest, AllVersionsLieWhereTheFirstLies) {
  Graph graph = draft_.graph;
  const ValueId w = graph.Find("w.next");
  const ValueId m = graph.Find("m.next");
  const auto [last, state] =
      AppendVersions(graph, RandomGraphOps(), w, m, graph.Find("dw"), Phase::kUpdate);
  std::reverse(graph.carries.begin(), graph.carries.end());  // the order of carries does not matter
  draft_ = MakeDraft(graph, RandomGraphOps());
  EXPECT_EQ(draft_.storage[w.index()], graph.Find("w"));
  EXPECT_EQ(draft_.storage[last.index()], graph.Find("w"));
  EXPECT_EQ(draft_.storage[state.index()], graph.Find("m"));
  EXPECT_EQ(Buffer("w").values, (std::vector<ValueId>{graph.Find("w"), w, last}));
}

TEST_F(DraftTest, ResidentsAreIntervalsWithoutBytes) {
  const auto buffers = Buffers(draft_);
  const auto intervals = IntervalsOf(buffers);
  ASSERT_EQ(intervals.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(intervals[i].size_bytes, buffers[i].resident ? 0 : buffers[i].size_bytes);
    EXPECT_EQ(intervals[i].live, buffers[i].live);
  }
}

TEST_F(DraftTest, ScratchIsABufferOfOneStep) {
  const DraftBuffer scratch = Buffer("scratch of blur blur");
  EXPECT_EQ(scratch.size_bytes, kScratchBytes);
  EXPECT_EQ(scratch.live, (LiveRange{2, 3}));
  EXPECT_EQ(scratch.scratch_step, 2U);
  EXPECT_FALSE(scratch.resident);
  EXPECT_TRUE(scratch.values.empty());
}

TEST_F(DraftTest, SharedStorageIsOneBufferForAllItsLives) {
  const Graph& graph = draft_.graph;
  draft_.storage[graph.Find("b").index()] = graph.Find("a");
  const DraftBuffer shared = Buffer("a");
  EXPECT_EQ(shared.live, (LiveRange{0, 4}));
  EXPECT_EQ(shared.values, (std::vector<ValueId>{graph.Find("a"), graph.Find("b")}));
  EXPECT_EQ(shared.size_bytes, 96U);
}

TEST_F(DraftTest, SizesAreWholeWords) {
  Graph graph;
  graph.AddValue({"bytes", {5}, DType::kU8, Role::kInput, {}, {}});
  draft_ = MakeDraft(graph, RandomGraphOps());
  EXPECT_EQ(Buffer("bytes").size_bytes, 8U);
}

TEST_F(DraftTest, PeakLeavesResidentsOut) {
  // Step 2 holds b, c and the scratch; step 3 holds b, c and the loss.
  EXPECT_EQ(LivePeakBytes(draft_), 3U * 96);
  EXPECT_EQ(CountLivePeak(draft_), 3U * 96);
}

TEST_F(DraftTest, PeakIsWhatCountingGives) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    draft_ = MakeDraft(RandomToyGraph(random, 2 + seed % 12).Take(), RandomGraphOps());
    EXPECT_EQ(LivePeakBytes(draft_), CountLivePeak(draft_)) << "seed " << seed;
    draft_.storage = ShareInPlace(draft_, RandomGraphOps());
    EXPECT_EQ(LivePeakBytes(draft_), CountLivePeak(draft_)) << "in place, seed " << seed;
  }
}

}  // namespace
}  // namespace thimble::toy
