#include "thimble/grad/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(Optimizer, UnknownNamesAreRefused) {
  for (const char* name : {"sgd", "adam"}) {
    EXPECT_TRUE(MakeOptimizer({.optimizer = {.name = name}}).ok());
  }
  const auto made = MakeOptimizer({.optimizer = {.name = "adamant"}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(made.error().message,
              testing::HasSubstr("no optimizer 'adamant', expected sgd or adam"));
}

TEST(Optimizer, NamesOfTheUpdateAreReserved) {
  Graph graph;
  EXPECT_TRUE(AddUpdateValue(graph, {"seen", {1}, DType::kI32, Role::kInput, {}, {}}).ok());
  const auto again = AddUpdateValue(graph, {"seen", {1}, DType::kI32, Role::kInput, {}, {}});
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, testing::HasSubstr("'seen' is reserved for the optimizer"));
}

}  // namespace
}  // namespace thimble
