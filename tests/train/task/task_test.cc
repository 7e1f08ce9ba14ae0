#include "thimble/train/task/task.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(ParseDataPart, KnowsThreeParts) {
  EXPECT_EQ(*ParseDataPart("train"), DataPart::kTrain);
  EXPECT_EQ(*ParseDataPart("validation"), DataPart::kValidation);
  EXPECT_EQ(*ParseDataPart("test"), DataPart::kTest);
  EXPECT_EQ(ParseDataPart("Test").error().message,
            "part 'Test': expected train, validation or test");
}

}  // namespace
}  // namespace thimble
