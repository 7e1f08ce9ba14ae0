#include "thimble/program/sparsity/sparsity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/program/techniques.h"

namespace thimble {
namespace {

using testing::HasSubstr;

UpdateSpec SparseSpecBy(const Technique& technique, const std::string& value) {
  UpdateSpec update;
  EXPECT_TRUE(technique.ChangeUpdate(value, /*in_parts=*/false, update).ok()) << value;
  return update;
}

TEST(SparsityTechnique, LeversBecomeMembersOfTheSpec) {
  EXPECT_EQ(SparseSpecBy(*MakeSparsity(), "0.75").sparsity.fraction, 0.75);
  EXPECT_EQ(SparseSpecBy(*MakeSparseMethod(), "set").sparsity.method, "set");
  EXPECT_EQ(SparseSpecBy(*MakeSparseLayers(), "a*,b").sparsity.layers, "a*,b");
  EXPECT_EQ(SparseSpecBy(*MakeRewireEvery(), "30").sparsity.rewire_every, 30);
}

TEST(SparsityTechnique, RefusesWhatIsNoFraction) {
  for (const char* value : {"1", "-0.1", "1.5", "nan", "inf", "", "0.5x", "half"}) {
    const auto checked = FindLever("sparsity")->check(value);
    ASSERT_FALSE(checked.ok()) << value;
    EXPECT_THAT(checked.error().message, HasSubstr("expected a fraction")) << value;
  }
  EXPECT_TRUE(FindLever("sparsity")->check("0.999").ok());
}

TEST(SparsityTechnique, RefusesWhatIsNoNumberOfSteps) {
  for (const char* value : {"0", "-1", "2.5", "often"}) {
    EXPECT_FALSE(FindLever("rewire-every")->check(value).ok()) << value;
  }
}

TEST(SparsityTechnique, IsForSgdOnly) {
  UpdateSpec adam{.optimizer = {.name = "adam"}};
  const auto changed = MakeSparsity()->ChangeUpdate("0.5", /*in_parts=*/false, adam);
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(changed.error().message, HasSubstr("only with --optimizer sgd, not adam"));
  const Lever& lever = *FindLever("sparsity");
  EXPECT_FALSE(lever.worth_trying({.value = lever.plain}).empty());
  EXPECT_FALSE(lever.budget_steps({.value = lever.plain}).empty());
  EXPECT_TRUE(lever.worth_trying({.value = lever.plain, .optimizer = "adam"}).empty());
  EXPECT_TRUE(lever.budget_steps({.value = lever.plain, .optimizer = "adam"}).empty());
}

TEST(SparsityTechnique, HasHundredthsBetweenWhatABudgetTries) {
  const auto& between = FindLever("sparsity")->between;
  const auto half = between({"0.7", 0.2}, {"0.8", 0.6});
  ASSERT_TRUE(half.has_value());
  EXPECT_EQ(half->value, "0.75");
  EXPECT_NEAR(half->lost_points, 0.4, 1e-9);
  const auto uneven = between({"0.7", 0.2}, {"0.75", 0.4});
  ASSERT_TRUE(uneven.has_value());
  EXPECT_EQ(uneven->value, "0.73");
  EXPECT_NEAR(uneven->lost_points, 0.32, 1e-9);
  EXPECT_EQ(between({"0", 0}, {"0.5", 0.1})->value, "0.25");
  EXPECT_FALSE(between({"0.7", 0.2}, {"0.71", 0.3}).has_value()) << "nothing is between";
  EXPECT_FALSE(between({"0.7", 0.2}, {"0.7", 0.3}).has_value());
  EXPECT_FALSE(between({"0.3", 0.06}, {"0.4", 0.08}).has_value()) << "no difference to see";
}

TEST(SparsityTechnique, IsLossyUnlessPlain) {
  const Lever& lever = *FindLever("sparsity");
  EXPECT_EQ(lever.exactness(Graph(), {.value = lever.plain}), "same-bits");
  EXPECT_EQ(lever.exactness(Graph(), {.value = "0.8"}), "lossy");
}

}  // namespace
}  // namespace thimble
