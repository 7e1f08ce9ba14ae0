#include "thimble/train/options/option_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OptionValues, WordsAndWhatIsFilledIn) {
  const auto values = ValuesOf("none|blocks[:N]|cifar10:DIR|wrn-DEPTH-WIDTH|FILE.toml");
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(values[0].word, "none");
  EXPECT_TRUE(values[0].whole);
  EXPECT_EQ(values[1].word, "blocks");
  EXPECT_TRUE(values[1].whole);
  EXPECT_EQ(values[2].word, "cifar10:");
  EXPECT_FALSE(values[2].whole);
  EXPECT_TRUE(values[2].is_folder);
  EXPECT_FALSE(values[2].is_file);
  EXPECT_EQ(values[3].word, "wrn-");
  EXPECT_FALSE(values[3].whole);
  EXPECT_EQ(values[4].word, "");
  EXPECT_FALSE(values[4].whole);
  EXPECT_TRUE(values[4].is_file);
}

TEST(OptionValues, OnlyWhereNothingIsLeftToTheUser) {
  EXPECT_THAT(OnlyValues("cpu|cuda"), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(OnlyValues("crop-flip"), ElementsAre("crop-flip"));
  EXPECT_THAT(OnlyValues("auto|TARGET"), IsEmpty());
  EXPECT_THAT(OnlyValues("none|blocks[:2]"), IsEmpty());
  EXPECT_THAT(OnlyValues("N"), IsEmpty());
  EXPECT_THAT(OnlyValues(""), IsEmpty());
  EXPECT_THAT(ValuesOf(""), IsEmpty());
}

TEST(OptionValues, AsAList) {
  EXPECT_EQ(AnyOf({}), "");
  EXPECT_EQ(AnyOf({"cpu"}), "cpu");
  EXPECT_EQ(AnyOf({"cpu", "cuda"}), "cpu or cuda");
  EXPECT_EQ(AnyOf({"auto", "tf32", "fp32"}), "auto, tf32 or fp32");
}

}  // namespace
}  // namespace thimble
