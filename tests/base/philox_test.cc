#include "thimble/base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace thimble {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, GivesPublishedAnswers) {
  // Known-answer vectors of the Random123 distribution, philox4x32 with 10 rounds.
  EXPECT_EQ(Philox4x32({0, 0}, {0, 0, 0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, EveryPartOfTheCounterMatters) {
  const RandomSource source(1, RandomPurpose::kTest);
  std::set<Words> seen;
  seen.insert(source.Words(0, 0, 0));
  seen.insert(source.Words(1, 0, 0));
  seen.insert(source.Words(0, 1, 0));
  seen.insert(source.Words(0, 0, 1));
  seen.insert(source.Words(0, 0, uint64_t{1} << 32));
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Philox, SeedAndPurposeMatter) {
  std::set<Words> seen;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (RandomPurpose purpose : {RandomPurpose::kInit, RandomPurpose::kShuffle}) {
      seen.insert(RandomSource(seed, purpose).Words(0, 0, 0));
    }
  }
  EXPECT_EQ(seen.size(), 6U);
}

TEST(Philox, SameCallGivesSameNumbers) {
  EXPECT_EQ(RandomSource(7, RandomPurpose::kAugment).Words(3, 5, 9),
            RandomSource(7, RandomPurpose::kAugment).Words(3, 5, 9));
}

TEST(Philox, UniformFloatStaysBelowOne) {
  EXPECT_EQ(UniformFloat(0), 0);
  EXPECT_LT(UniformFloat(0xffffffff), 1);
}

TEST(Philox, UniformBelowStaysBelowItsBound) {
  for (uint32_t bound : {1U, 3U, 10U, 0x80000001U}) {
    EXPECT_EQ(UniformBelow(0, bound), 0U);
    EXPECT_EQ(UniformBelow(0xffffffff, bound), bound - 1);
  }
}

TEST(Philox, NormalFloatsHaveMeanZeroAndVarianceOne) {
  const RandomSource source(1, RandomPurpose::kTest);
  constexpr int kCount = 20000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto words = source.Words(0, 0, static_cast<uint64_t>(i));
    const double number = static_cast<double>(NormalFloat(words[0], words[1]));
    sum += number;
    squares += number * number;
  }
  // Four standard deviations of either estimate.
  EXPECT_NEAR(sum / kCount, 0, 4 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 4 * std::sqrt(2.0 / kCount));
}

TEST(Philox, NormalFloatIsFiniteForAllWords) {
  for (uint32_t word : {0U, 0xffffffffU}) {
    EXPECT_TRUE(std::isfinite(NormalFloat(word, 0)));
    EXPECT_TRUE(std::isfinite(NormalFloat(word, 0xffffffff)));
  }
}

}  // namespace
}  // namespace thimble
