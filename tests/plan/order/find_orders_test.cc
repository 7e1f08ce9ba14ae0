#include "thimble/plan/order/find_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/plan/random_graph.h"

namespace thimble::toy {
namespace {

// Their quality is tested in tests/plan/passes/order_test.cc, that they respect versions in
// tests/plan/versions_test.cc.
TEST(FindOrders, HaveEveryNodeOnceAndPhasesApart) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const Graph graph = RandomToyGraph(random, 4 + seed % 20).Take();
    const auto orders = FindOrders(graph);
    ASSERT_EQ(orders.size(), 3U) << "seed " << seed;
    for (const FoundOrder& found : orders) {
      EXPECT_FALSE(found.how.empty());
      std::vector<NodeId> nodes = found.order;
      EXPECT_TRUE(std::is_sorted(
          nodes.begin(), nodes.end(),
          [&](NodeId a, NodeId b) { return graph.node(a).phase < graph.node(b).phase; }))
          << "seed " << seed;
      std::sort(nodes.begin(), nodes.end());
      ASSERT_EQ(nodes.size(), graph.nodes.size());
      for (size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i], NodeId(i)) << "seed " << seed;
    }
  }
}

// A forward node that reads a value made in backward never runs.
TEST(FindOrders, GreedyOnesAreLeftOutWherePhasesContradictTheDataFlow) {
  Graph graph = MakeTrainingGraph(RandomGraphOps());
  graph.nodes[0].phase = Phase::kBackward;
  for (const FoundOrder& found : FindOrders(graph)) {
    EXPECT_EQ(found.order.size(), graph.nodes.size());
  }
}

TEST(FindOrders, AGraphWithoutNodesHasEmptyOnes) {
  for (const FoundOrder& found : FindOrders(Graph{})) EXPECT_TRUE(found.order.empty());
}

}  // namespace
}  // namespace thimble::toy
