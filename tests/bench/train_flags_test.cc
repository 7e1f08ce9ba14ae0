#include "bench/train_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using ::testing::StartsWith;

TEST(TrainFlags, AreReadWithTheirValues) {
  TrainConfig config = BenchDefaults();
  const std::vector<std::string> words = {"--nesterov", "--batch", "7"};
  size_t index = 0;
  EXPECT_TRUE(ReadTrainFlag(words, &index, config).ok());
  EXPECT_EQ(index, 0);
  ++index;
  EXPECT_TRUE(ReadTrainFlag(words, &index, config).ok());
  EXPECT_EQ(index, 2);
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.batch, 7);
}

TEST(TrainFlags, AreRefusedInWords) {
  const auto error = [](const std::vector<std::string>& words) {
    TrainConfig config = BenchDefaults();
    size_t index = 0;
    const auto read = ReadTrainFlag(words, &index, config);
    EXPECT_FALSE(read.ok());
    return read.ok() ? std::string() : read.error().message;
  };
  EXPECT_THAT(error({"batch"}), StartsWith("batch: unknown option"));
  EXPECT_THAT(error({"--speed", "3"}), StartsWith("--speed: unknown option"));
  EXPECT_THAT(error({"--batch"}), StartsWith("--batch: expected a value"));
  EXPECT_THAT(error({"--batch", "many"}), StartsWith("--batch many: expected a whole number"));
}

}  // namespace
}  // namespace thimble
