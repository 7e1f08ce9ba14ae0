#include "thimble/graph/graph.h"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"

namespace thimble {
namespace {

TEST(Graph, FindsValuesByName) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", {2});
  EXPECT_EQ(graph.Find("x"), x);
  EXPECT_FALSE(graph.Find("y").valid());
}

TEST(Graph, MakesNamesUnique) {
  Graph graph;
  EXPECT_EQ(graph.UniqueName("x"), "x");
  AddInput(graph, "x", {2});
  EXPECT_EQ(graph.UniqueName("x"), "x.2");
  AddInput(graph, "x.2", {2});
  EXPECT_EQ(graph.UniqueName("x"), "x.3");
}

TEST(Graph, UniqueNamesTakeTheSmallestNumber) {
  Graph graph;
  for (const char* name : {"x", "x.3", "x.2y", "x.02", "x.", "xx.2", "x.99999999999999999999"}) {
    AddInput(graph, name, {2});
  }
  EXPECT_EQ(graph.UniqueName("x"), "x.2");
  AddInput(graph, "x.2", {2});
  EXPECT_EQ(graph.UniqueName("x"), "x.4");
  EXPECT_EQ(graph.UniqueName("x.2"), "x.2.2");
}

TEST(Graph, CountsParametersButNotTheirNextVersions) {
  Graph graph;
  const ValueId weight = AddInput(graph, "weight", {3, 4}, Role::kParameter);
  AddInput(graph, "mean", {5}, Role::kStatistic);
  const ValueId next = AppendToy(graph, ToyOps(), "scale", {weight});
  graph.values[next.index()].role = Role::kParameter;
  EXPECT_EQ(CountParameters(graph), 12);
}

TEST(Graph, KnowsWhatLivesFromStepToStep) {
  EXPECT_TRUE(IsPersistent(Role::kParameter));
  EXPECT_TRUE(IsPersistent(Role::kStatistic));
  EXPECT_TRUE(IsPersistent(Role::kState));
  EXPECT_TRUE(IsPersistent(Role::kAccumulator));
  EXPECT_FALSE(IsPersistent(Role::kInput));
  EXPECT_FALSE(IsPersistent(Role::kActivation));
  EXPECT_FALSE(IsPersistent(Role::kGradient));
}

TEST(Graph, ValuesKnowTheirBytes) {
  EXPECT_EQ((Value{"x", Shape{3, 5}, DType::kF32, Role::kInput, {}, {}}).size_bytes(), 60U);
  EXPECT_EQ((Value{"x", Shape{3, 5}, DType::kU8, Role::kInput, {}, {}}).size_bytes(), 15U);
}

TEST(Graph, PrintsALinePerNode) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", {2, 3});
  AppendToy(graph, ToyOps(), "scale", {x});
  EXPECT_EQ(ToString(graph), "input %x f32 (2, 3)\n%scale.y = scale(%x) factor=2 [forward]\n");
}

TEST(Graph, PrintsCarries) {
  Graph graph;
  const ValueId weight = AddInput(graph, "w", {1}, Role::kParameter);
  const ValueId next = AppendToy(graph, ToyOps(), "scale", {weight});
  graph.carries.push_back({weight, next});
  EXPECT_NE(ToString(graph).find("carry %w -> %scale.y\n"), std::string::npos);
}

TEST(Graph, VersionsAreFoundFromAnyOfThem) {
  Graph graph;
  const ValueId pool = AddInput(graph, "pool", {1}, Role::kParameter);
  const ValueId next = AppendToy(graph, ToyOps(), "scale", {pool});
  const ValueId last = AppendToy(graph, ToyOps(), "scale", {next});
  const ValueId other = AppendToy(graph, ToyOps(), "scale", {next});
  graph.carries = {{next, last}, {pool, next}};
  for (ValueId version : {pool, next, last}) {
    EXPECT_EQ(FirstVersion(graph, version), pool);
    EXPECT_EQ(LastVersion(graph, version), last);
  }
  EXPECT_EQ(FirstVersion(graph, other), other);
  EXPECT_EQ(LastVersion(graph, other), other);
}

TEST(Graph, ComparesEverything) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", {2});
  Graph other = graph;
  EXPECT_EQ(graph, other);
  other.outputs.push_back(x);
  EXPECT_NE(graph, other);
}

TEST(Graph, NamesOfRolesAndPhasesDiffer) {
  EXPECT_EQ(Name(Role::kParameter), "parameter");
  EXPECT_EQ(Name(Role::kGradient), "gradient");
  EXPECT_EQ(Name(Phase::kForward), "forward");
  EXPECT_EQ(Name(Phase::kUpdate), "update");
}

#ifndef NDEBUG
TEST(GraphDeathTest, TwoValuesOfOneNameStop) {
  Graph graph;
  AddInput(graph, "x", {2});
  EXPECT_DEATH(AddInput(graph, "x", {2}), "two values named 'x'");
}
#endif

}  // namespace
}  // namespace thimble
