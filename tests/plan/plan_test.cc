#include "thimble/plan/plan.h"

#include <gtest/gtest.h>

#include <set>

namespace thimble {
namespace {

TEST(PlanTest, CategoriesHaveTheNamesOfTheReports) {
  EXPECT_EQ(Name(Category::kModel), "model");
  EXPECT_EQ(Name(Category::kGradients), "gradients");
  EXPECT_EQ(Name(Category::kOptimizer), "optimizer");
  EXPECT_EQ(Name(Category::kActivations), "activations");
  EXPECT_EQ(Name(Category::kTransient), "transient");
  EXPECT_EQ(Name(Category::kData), "data");
}

TEST(PlanTest, EveryCategoryIsCounted) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kNumCategories; ++i) names.insert(Name(static_cast<Category>(i)));
  EXPECT_EQ(names.size(), kNumCategories);
  EXPECT_EQ(names.count("?"), 0U);
  EXPECT_EQ(Name(static_cast<Category>(kNumCategories)), "?");
}

TEST(PlanTest, CategoryFollowsFromTheRole) {
  Graph graph;
  const auto category = [&](Role role) {
    const std::string name = std::to_string(graph.values.size());
    return CategoryOf(graph, graph.AddValue({name, {2}, DType::kF32, role, {}, {}}));
  };
  EXPECT_EQ(category(Role::kParameter), Category::kModel);
  EXPECT_EQ(category(Role::kStatistic), Category::kModel);
  EXPECT_EQ(category(Role::kState), Category::kOptimizer);
  EXPECT_EQ(category(Role::kAccumulator), Category::kGradients);
  EXPECT_EQ(category(Role::kInput), Category::kData);
  EXPECT_EQ(category(Role::kActivation), Category::kActivations);
}

TEST(PlanTest, OnlyGradientsOfParametersAreGradients) {
  Graph graph;
  const ValueId w = graph.AddValue({"w", {2}, DType::kF32, Role::kParameter, {}, {}});
  const ValueId a = graph.AddValue({"a", {2}, DType::kF32, Role::kActivation, {}, {}});
  const ValueId dw = graph.AddValue({"dw", {2}, DType::kF32, Role::kGradient, {}, w});
  const ValueId da = graph.AddValue({"da", {2}, DType::kF32, Role::kGradient, {}, a});
  const ValueId part = graph.AddValue({"part", {2}, DType::kF32, Role::kGradient, {}, {}});
  EXPECT_EQ(CategoryOf(graph, dw), Category::kGradients);
  EXPECT_EQ(CategoryOf(graph, da), Category::kTransient);
  EXPECT_EQ(CategoryOf(graph, part), Category::kTransient);
}

TEST(PlanTest, FindsResidentsByName) {
  const ResidentLayout layout{{{"w", 8, 0, Category::kModel}, {"m", 8, 64, Category::kOptimizer}},
                              128};
  ASSERT_NE(layout.Find("m"), nullptr);
  EXPECT_EQ(layout.Find("m")->offset, 64U);
  EXPECT_EQ(layout.Find("momentum"), nullptr);
  EXPECT_EQ(layout.Find(""), nullptr);
}

}  // namespace
}  // namespace thimble
