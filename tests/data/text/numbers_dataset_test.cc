#include "thimble/data/text/numbers_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace thimble {
namespace {

NumbersDataset OpenNumbersSplit(NumbersSplit split, int64_t size, uint64_t seed = 1) {
  return NumbersDataset(MakeNumbersDictionaries(), seed, split, size);
}

std::vector<std::string> SourceLines(const TextDataset& dataset) {
  std::vector<std::string> lines;
  for (int64_t i = 0; i < dataset.size(); ++i) lines.push_back(*dataset.SourceLine(i));
  return lines;
}

TEST(NumbersDatasetTest, IndicesAndLinesAgree) {
  const NumbersDataset dataset = OpenNumbersSplit(NumbersSplit::kTrain, 500);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const PairLength length = dataset.LengthAt(i);
    std::vector<int32_t> source(length.source);
    std::vector<int32_t> target(length.target);
    ASSERT_TRUE(dataset.Read(i, source, target).ok());
    EXPECT_EQ(dataset.source_dictionary().Line(source), *dataset.SourceLine(i));
    EXPECT_EQ(dataset.target_dictionary().Line(target), *dataset.TargetLine(i));
    for (const auto& ids : {source, target}) {
      EXPECT_EQ(ids.back(), Dictionary::kEnd);
      for (size_t at = 0; at + 1 < ids.size(); ++at) EXPECT_GE(ids[at], Dictionary::kNumSpecial);
    }
  }
}

TEST(NumbersDatasetTest, PairsDependOnSeedSplitAndIndexOnly) {
  const auto lines = SourceLines(OpenNumbersSplit(NumbersSplit::kTrain, 200));
  auto longer = SourceLines(OpenNumbersSplit(NumbersSplit::kTrain, 300));
  longer.resize(200);
  EXPECT_EQ(lines, longer);
  EXPECT_NE(lines, SourceLines(OpenNumbersSplit(NumbersSplit::kTrain, 200, 2)));
}

TEST(NumbersDatasetTest, SplitsShareNoSentence) {
  const auto unique = [](NumbersSplit split, int64_t size) {
    const auto lines = SourceLines(OpenNumbersSplit(split, size));
    return std::set<std::string>(lines.begin(), lines.end());
  };
  const auto train = unique(NumbersSplit::kTrain, 20'000);
  const auto test = unique(NumbersSplit::kTest, 2000);
  const auto validation = unique(NumbersSplit::kValidation, 2000);
  EXPECT_GT(train.size(), 10'000U);
  EXPECT_GT(test.size(), 1000U);
  for (const std::string& line : test) {
    EXPECT_FALSE(train.contains(line)) << line;
    EXPECT_FALSE(validation.contains(line)) << line;
  }
  for (const std::string& line : validation) EXPECT_FALSE(train.contains(line)) << line;
}

TEST(NumbersDatasetTest, ATenthOfAllSentencesIsForTest) {
  const RandomSource source(3, RandomPurpose::kNumbers);
  std::vector<int64_t> counts(3);
  for (uint32_t i = 0; i < 20'000; ++i) {
    const NumberPhrase phrase = DrawNumberPhrase(source, 0, i, 0);
    ++counts[static_cast<size_t>(SplitOfPhrase(phrase.german))];
  }
  // Five deviations of a binomial number of 20,000 independent tenths; repeated sentences widen it.
  EXPECT_NEAR(static_cast<double>(counts[1]), 2000, 5 * 42 * 2);
  EXPECT_NEAR(static_cast<double>(counts[2]), 2000, 5 * 42 * 2);
}

// The sentences must be the same on every machine, or runs could not be compared.
TEST(NumbersDatasetTest, SentencesArePinned) {
  const NumbersDataset dataset = OpenNumbersSplit(NumbersSplit::kTest, 100);
  std::string all;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    all += *dataset.SourceLine(i) + "|" + *dataset.TargetLine(i) + "\n";
  }
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : all) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  EXPECT_EQ(hash, 0x99678a6ca8951b4cULL) << all;
}

TEST(NumbersDatasetDeathTest, WrongUse) {
  const NumbersDataset dataset = OpenNumbersSplit(NumbersSplit::kTrain, 10);
  std::vector<int32_t> ids(47);
  EXPECT_DEATH((void)dataset.LengthAt(10), "pair 10 of 10");
  EXPECT_DEATH((void)dataset.Read(0, ids, ids).ok(), "space for 47 tokens");
  EXPECT_DEATH(OpenNumbersSplit(NumbersSplit::kTrain, 0), "0 pairs");
}

}  // namespace
}  // namespace thimble
