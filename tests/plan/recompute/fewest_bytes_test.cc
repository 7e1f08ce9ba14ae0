#include "thimble/plan/recompute/fewest_bytes.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "thimble/plan/recompute/optimal.h"

namespace thimble {
namespace {

TEST(FewestBytes, AreThoseOfTheFirstTradeOff) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const PlanDraft draft = toy::MakeDraft(toy::RandomNetwork(random, 7).Take(true), BuiltinOps());
    for (const size_t max_stages : {size_t{3}, size_t{9}, kMaxStages}) {
      const Chain chain = MakeChain(draft, BuiltinOps(), {}, max_stages).value();
      const OptimalSchedules optimal(draft.graph, BuiltinOps(), chain);
      EXPECT_EQ(FewestBytes(draft.graph, BuiltinOps(), chain), optimal.tradeoffs().front().bytes)
          << "seed " << seed << ", up to " << max_stages << " stages";
    }
  }
}

TEST(FewestBytes, AreNoneWithoutStages) {
  std::mt19937 random(1);
  const PlanDraft draft = toy::MakeDraft(toy::RandomNetwork(random, 3).Take(true), BuiltinOps());
  EXPECT_EQ(FewestBytes(draft.graph, BuiltinOps(), Chain{}), 0U);
}

}  // namespace
}  // namespace thimble
