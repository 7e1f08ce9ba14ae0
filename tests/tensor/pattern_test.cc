#include "thimble/tensor/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace thimble {
namespace {

using testing::HasSubstr;
using Words = std::vector<int32_t>;

const std::vector<int64_t> kTensors = {300, 1, 256, 40};

Words Drawn(const std::vector<int64_t>& tensors, double sparsity, uint64_t seed = 1) {
  Words words(static_cast<size_t>(PatternWords(PatternBlocks(tensors))), -1);
  DrawPattern(words, tensors, sparsity, seed);
  return words;
}

int64_t ActiveIn(const Words& words) { return words.back(); }

std::string Fault(const Words& words, int64_t active) {
  const auto result = CheckPattern(words, kTensors, active);
  return result.ok() ? "" : result.error().message;
}

TEST(Pattern, HasBlocksForEachTensor) {
  EXPECT_EQ(PatternBlocks(kTensors), 2 + 1 + 1 + 1);
  EXPECT_EQ(PatternBlocks(std::vector<int64_t>{}), 0);
}

TEST(Pattern, ElementBitsEndWithTheTensor) {
  EXPECT_EQ(PatternElementBits(-1), 0U);
  EXPECT_EQ(PatternElementBits(0), 0U);
  EXPECT_EQ(PatternElementBits(3), 7U);
  EXPECT_EQ(PatternElementBits(32), UINT32_MAX);
  EXPECT_EQ(PatternElementBits(1000), UINT32_MAX);
}

TEST(DrawPattern, HasTheWantedNumberInEachTensor) {
  EXPECT_EQ(ActiveAtStart(1000, 0.9), 100);  // 1 - 0.9 is a little less than 0.1
  EXPECT_EQ(ActiveAtStart(9, 0.5), 4);
  EXPECT_EQ(ActiveAtStart(3, 0.99), 1);
  EXPECT_EQ(ActiveAtStart(7, 0), 7);
  const Words words = Drawn(kTensors, 0.8);
  EXPECT_EQ(ActiveIn(words), 60 + 1 + 51 + 8);
  EXPECT_EQ(Fault(words, 120), "");
  int64_t block = 0;
  for (size_t i = 0; i < kTensors.size(); ++i) {
    const PackedPlace place = PackedPlaceIn(words.data(), PatternBlocks(kTensors), block,
                                            kTensors[i], static_cast<int64_t>(i));
    EXPECT_EQ(place.count(), static_cast<size_t>(ActiveAtStart(kTensors[i], 0.8)));
    block += place.blocks;
  }
}

TEST(DrawPattern, IsAFunctionOfTheSeed) {
  EXPECT_EQ(Drawn(kTensors, 0.8, 5), Drawn(kTensors, 0.8, 5));
  EXPECT_NE(Drawn(kTensors, 0.8, 5), Drawn(kTensors, 0.8, 6));
}

TEST(DrawPattern, ActivatesEachPositionEquallyOften) {
  constexpr int kTimes = 2000;
  constexpr double kDensity = 0.25;
  const std::vector<int64_t> tensors = {60};
  std::vector<int> counts(60);
  for (uint64_t seed = 0; seed < kTimes; ++seed) {
    const Words words = Drawn(tensors, 1 - kDensity, seed);
    const PackedPlace place = PackedPlaceIn(words.data(), 1, 0, 60, 0);
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += place.IsActive(i) ? 1 : 0;
  }
  const double deviation = std::sqrt(kTimes * kDensity * (1 - kDensity));
  for (const int count : counts) EXPECT_NEAR(count, kTimes * kDensity, 5 * deviation);
}

TEST(SetStarts, CountsTheBitsBefore) {
  Words words = Drawn(kTensors, 0.5);
  const Words expected = words;
  std::fill(words.end() - 6, words.end(), -1);
  SetStarts(words, 5);
  EXPECT_EQ(words, expected);
}

TEST(CheckPattern, RefusesAnotherSize) {
  Words words = Drawn(kTensors, 0.8);
  words.push_back(0);
  EXPECT_THAT(Fault(words, 120), HasSubstr("47 words, expected 46 for 5 blocks"));
  EXPECT_THAT(Fault({}, 120), HasSubstr("0 words"));
}

TEST(CheckPattern, RefusesPositionsBehindTheLastElement) {
  Words words = Drawn(kTensors, 0.8);
  words[9] |= 1 << 12;  // 300 = 9 * 32 + 12
  SetStarts(words, 5);
  EXPECT_THAT(Fault(words, 121), HasSubstr("position 300 of tensor 0 is active"));
  EXPECT_THAT(Fault(words, 121), HasSubstr("at most 299"));
}

TEST(CheckPattern, RefusesTensorsWithoutActiveElements) {
  Words words = Drawn(kTensors, 0.8);
  words[16] = 0;  // the tensor of one element
  SetStarts(words, 5);
  EXPECT_THAT(Fault(words, 119), HasSubstr("tensor 1 of 1 elements has no active one"));
}

TEST(CheckPattern, RefusesStartsThatDoNotMatch) {
  for (size_t start = 40; start < 46; ++start) {
    Words words = Drawn(kTensors, 0.8);
    words[start] += 1;
    EXPECT_THAT(Fault(words, 120), HasSubstr("block " + std::to_string(start - 40) + " of 5"));
    words[start] = -7;
    EXPECT_NE(Fault(words, 120), "");
  }
}

TEST(CheckPattern, RefusesAnotherNumberOfActiveElements) {
  EXPECT_THAT(Fault(Drawn(kTensors, 0.8), 121),
              HasSubstr("120 positions are active, expected 121"));
}

}  // namespace
}  // namespace thimble
