#include "thimble/plan/recompute/forward_costs.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"

namespace thimble {
namespace {

TEST(ForwardCosts, AreThoseOfTheStretches) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    const PlanDraft draft = toy::MakeDraft(toy::RandomNetwork(random, 4).Take(true), BuiltinOps());
    const Chain chain = MakeChain(draft, BuiltinOps(), {}, 16).value();
    const Stretches stretches(draft.graph, BuiltinOps(), chain);
    ForwardCosts costs(stretches, chain.num_stages);
    for (size_t t = 0; t < chain.num_stages; ++t) {
      for (size_t i = 1; i <= t; ++i) {
        for (size_t s = 0; s < i; ++s) {
          const StretchCost expected = stretches.Forward(s, i, t);
          const StretchCost& actual = costs.Of(s, i, t, stretches.Entry(s, i, t).count);
          EXPECT_EQ(actual.bytes, expected.bytes) << seed << ": " << s << " " << i << " " << t;
          EXPECT_EQ(actual.work, expected.work) << seed << ": " << s << " " << i << " " << t;
        }
      }
    }
  }
}

}  // namespace
}  // namespace thimble
