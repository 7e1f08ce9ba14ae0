#include "thimble/program/factored_moment/factored_moment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(SecondMoment, ChangesAdamOnly) {
  UpdateSpec adam{.optimizer = {.name = "adam"}};
  const auto technique = MakeSecondMoment();
  EXPECT_EQ(*technique->ChangeUpdate("full", false, adam), "");
  EXPECT_FALSE(adam.optimizer.factored);
  EXPECT_EQ(*technique->ChangeUpdate("factored", true, adam),
            "matrices keep means of rows and columns");
  EXPECT_TRUE(adam.optimizer.factored);
  UpdateSpec sgd;
  const auto refused = technique->ChangeUpdate("factored", false, sgd);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("only with --optimizer adam"));
  EXPECT_TRUE(technique->ChangeUpdate("full", false, sgd).ok());
}

TEST(SecondMoment, IsWorthTryingForAdam) {
  const auto technique = MakeSecondMoment();
  const Lever& lever = *technique->lever();
  EXPECT_THAT(lever.worth_trying({.value = "full", .optimizer = "adam"}),
              testing::ElementsAre("factored"));
  EXPECT_THAT(lever.worth_trying({.value = "factored", .optimizer = "adam"}), testing::IsEmpty());
  EXPECT_THAT(lever.worth_trying({.value = "full", .optimizer = "sgd"}), testing::IsEmpty());
  EXPECT_EQ(lever.exactness(Graph(), {.value = "full", .optimizer = "adam"}), "same-bits");
  EXPECT_EQ(lever.exactness(Graph(), {.value = "factored", .optimizer = "adam"}), "lossy");
}

}  // namespace
}  // namespace thimble
