#include "thimble/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace thimble {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return BadInput(fmt::format("{} is odd", number));
  return number / 2;
}

Result<int> Quarter(int number) {
  THIMBLE_ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

Result<std::unique_ptr<int>> Box(int number) {
  if (number < 0) return BadInput("negative");
  return std::make_unique<int>(number);
}

Result<void> CheckEven(int number) {
  THIMBLE_TRY(Half(number));
  return {};
}

TEST(Result, HoldsValue) {
  const Result<int> result = Half(6);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 3);
}

TEST(Result, HoldsError) {
  const Result<int> result = Half(7);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "7 is odd");
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  for (int number : {5, 6}) {
    Result<std::unique_ptr<int>> result = Box(number);
    ASSERT_TRUE(result.ok());
    const std::unique_ptr<int> taken = std::move(result).value();
    EXPECT_EQ(*taken, number);
  }
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).error().message, "3 is odd");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(CheckEven(1).error().message, "1 is odd");
}

TEST(Result, ContextKeepsKind) {
  const Error error = WithContext("file.toml", DoesNotFit("too large"));
  EXPECT_EQ(error.message, "file.toml: too large");
  EXPECT_EQ(error.kind, ErrorKind::kDoesNotFit);
}

TEST(Result, ExitCodesAreThoseOfTheCommandLine) {
  EXPECT_EQ(ExitCode(Failed("")), 1);
  EXPECT_EQ(ExitCode(BadInput("")), 2);
  EXPECT_EQ(ExitCode(DoesNotFit("")), 3);
}

TEST(ResultDeathTest, ValueOfFailedResultStops) {
  EXPECT_DEATH(static_cast<void>(Half(7).value()), "7 is odd");
}

TEST(ResultDeathTest, ErrorOfGoodResultStops) {
  EXPECT_DEATH(static_cast<void>(Half(6).error()), "succeeded");
  EXPECT_DEATH(static_cast<void>(Result<void>().error()), "succeeded");
}

}  // namespace
}  // namespace thimble
