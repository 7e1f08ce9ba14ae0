#include "thimble/plan/passes/placement.h"

#include <gtest/gtest.h>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"

namespace thimble::toy {
namespace {

TEST(PlacementTest, GivesEveryBufferAnOffset) {
  PlanDraft draft = MakeDraft(MakeTrainingGraph(RandomGraphOps()), RandomGraphOps());
  const auto what = MakePlacementPass()->Run(draft, RandomGraphOps(), {});
  ASSERT_TRUE(what.ok());
  // At the peak three buffers of 96 bytes, each rounded up to a multiple of 64.
  EXPECT_EQ(*what, "placed in 384 bytes; 288 are alive at the peak");
  const auto buffers = Buffers(draft);
  ASSERT_TRUE(draft.offsets);
  ASSERT_EQ(draft.offsets->size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ((*draft.offsets)[i] % kArenaAlignment, 0U);
    if (buffers[i].resident) {
      EXPECT_EQ((*draft.offsets)[i], 0U);
    }
  }
}

TEST(PlacementTest, KeepsApartWhatLivesTogether) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    PlanDraft draft = MakeDraft(RandomToyGraph(random, 15).Take(), RandomGraphOps());
    ASSERT_TRUE(MakePlacementPass()->Run(draft, RandomGraphOps(), {}).ok());
    const auto buffers = Buffers(draft);
    for (size_t i = 0; i < buffers.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (buffers[i].resident || buffers[j].resident) continue;
        if (!buffers[i].live.Overlaps(buffers[j].live)) continue;
        const size_t a = (*draft.offsets)[i];
        const size_t b = (*draft.offsets)[j];
        EXPECT_TRUE(a + buffers[i].size_bytes <= b || b + buffers[j].size_bytes <= a)
            << buffers[i].name << " and " << buffers[j].name << ", seed " << seed;
      }
    }
  }
}

TEST(PlacementTest, ResidentsTakeNoRoom) {
  Graph graph;
  AddInput(graph, "w", Role::kParameter, {1000});
  PlanDraft draft = MakeDraft(graph, RandomGraphOps());
  const auto what = MakePlacementPass()->Run(draft, RandomGraphOps(), {});
  ASSERT_TRUE(what.ok());
  EXPECT_EQ(*what, "placed in 0 bytes; 0 are alive at the peak");
}

}  // namespace
}  // namespace thimble::toy
