#include "thimble/data/text/batch_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/data/text/text_fixtures.h"

namespace thimble {
namespace {

// Tokens of an epoch with these shapes, padding included; every pair must find a shape.
int64_t PaddedTokens(const NumberedPairs& dataset, const std::vector<BatchShape>& shapes) {
  std::vector<int64_t> pairs(shapes.size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const PairLength length = dataset.LengthAt(i);
    const auto shape = std::find_if(shapes.begin(), shapes.end(),
                                    [&](const BatchShape& s) { return Holds(s, length); });
    EXPECT_NE(shape, shapes.end()) << length.source << " " << length.target;
    if (shape != shapes.end()) ++pairs[shape - shapes.begin()];
  }
  int64_t tokens = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t batches = (pairs[i] + shapes[i].samples - 1) / shapes[i].samples;
    EXPECT_GT(batches, 0) << "shape " << i << " has no pair";
    tokens += batches * TokensOf(shapes[i]);
  }
  return tokens;
}

TEST(BatchShapesTest, StayWithinTheLimits) {
  for (const uint64_t seed : {1, 2, 3}) {
    const NumberedPairs dataset(RandomLengths(500, 100, seed));
    for (const int32_t max_tokens : {100, 333, 4000}) {
      for (const int32_t max_shapes : {1, 2, 5, 32}) {
        const auto shapes =
            ChooseBatchShapes(dataset, {.max_tokens = max_tokens, .max_shapes = max_shapes});
        EXPECT_GE(shapes.size(), 1U);
        EXPECT_LE(shapes.size(), static_cast<size_t>(max_shapes));
        for (const BatchShape& shape : shapes) {
          EXPECT_GE(shape.samples, 1);
          EXPECT_LE(shape.samples * std::max(shape.source_length, shape.target_length), max_tokens);
        }
        PaddedTokens(dataset, shapes);
      }
    }
  }
}

TEST(BatchShapesTest, MoreShapesMeanLessPadding) {
  const NumberedPairs dataset(RandomLengths(5000, 40, 4));
  int64_t tokens = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    tokens += dataset.LengthAt(i).source + dataset.LengthAt(i).target;
  }
  int64_t fewer_shapes = std::numeric_limits<int64_t>::max();
  for (const int32_t max_shapes : {1, 2, 4, 8, 16, 32}) {
    const int64_t padded = PaddedTokens(
        dataset, ChooseBatchShapes(dataset, {.max_tokens = 1000, .max_shapes = max_shapes}));
    EXPECT_LT(padded, fewer_shapes);
    fewer_shapes = padded;
  }
  // These lengths are spread wider than those of real text, which need 7 %.
  EXPECT_LT(static_cast<double>(fewer_shapes), 1.15 * static_cast<double>(tokens));
}

TEST(BatchShapesTest, FitExactlyWhereThereAreFewLengths) {
  std::vector<PairLength> lengths(400, {10, 12});
  lengths.insert(lengths.end(), 600, {20, 18});
  const NumberedPairs dataset(std::move(lengths));
  const auto shapes = ChooseBatchShapes(dataset, {.max_tokens = 1000, .max_shapes = 8});
  // 83 and 50 sentences fit; 400 pairs take five batches, of 80.
  EXPECT_EQ(shapes, (std::vector<BatchShape>{{80, 10, 12}, {50, 20, 18}}));
}

TEST(BatchShapesTest, RarePairsGetNoBatchOfTheirOwnIfItDoesNotPay) {
  std::vector<PairLength> lengths(995, {10, 10});
  for (int32_t i = 5; i < 10; ++i) lengths.push_back({i, i});
  const NumberedPairs dataset(std::move(lengths));
  EXPECT_EQ(ChooseBatchShapes(dataset, {.max_tokens = 1000, .max_shapes = 32}).size(), 1U);
}

TEST(BatchShapesTest, OnePair) {
  const NumberedPairs dataset({{1, 7}});
  EXPECT_EQ(ChooseBatchShapes(dataset, {.max_tokens = 7, .max_shapes = 32}),
            (std::vector<BatchShape>{{1, 1, 7}}));
}

TEST(BatchShapesTest, TheLongestSentences) {
  const NumberedPairs dataset({{65'535, 1}, {1, 65'535}, {1, 1}});
  const auto shapes = ChooseBatchShapes(dataset, {.max_tokens = 65'535, .max_shapes = 32});
  PaddedTokens(dataset, shapes);
  for (const BatchShape& shape : shapes) EXPECT_LE(shape.samples, 65'535);
}

// The search need not find the best shapes, but none worse than these.
TEST(BatchShapesTest, NoCutOfTheSourceLengthsIsBetter) {
  const NumberedPairs dataset(RandomLengths(300, 12, 5));
  constexpr int32_t kMaxTokens = 24;
  constexpr int32_t kBatchCost = kMaxTokens / 4;
  const auto cost = [&](const std::vector<BatchShape>& shapes) {
    int64_t all = PaddedTokens(dataset, shapes);
    for (const BatchShape& shape : shapes) {
      int64_t pairs = 0;
      for (int64_t i = 0; i < dataset.size(); ++i) {
        const auto first = std::find_if(shapes.begin(), shapes.end(), [&](const BatchShape& s) {
          return Holds(s, dataset.LengthAt(i));
        });
        pairs += &*first == &shape ? 1 : 0;
      }
      all += (pairs + shape.samples - 1) / shape.samples * kBatchCost;
    }
    return all;
  };
  const int64_t chosen =
      cost(ChooseBatchShapes(dataset, {.max_tokens = kMaxTokens, .max_shapes = 2}));
  for (int32_t cut = 1; cut < 12; ++cut) {
    std::vector<PairLength> below;
    std::vector<PairLength> above;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const PairLength length = dataset.LengthAt(i);
      (length.source <= cut ? below : above).push_back(length);
    }
    if (below.empty() || above.empty()) continue;
    int64_t both = 0;
    for (const auto& side : {below, above}) {
      const NumberedPairs part(side);
      const auto shape = ChooseBatchShapes(part, {.max_tokens = kMaxTokens, .max_shapes = 1});
      const int64_t batches = (part.size() + shape[0].samples - 1) / shape[0].samples;
      both += batches * (TokensOf(shape[0]) + kBatchCost);
    }
    EXPECT_LE(chosen, both) << cut;
  }
}

TEST(BatchShapesDeathTest, WrongUse) {
  const NumberedPairs dataset({{5, 9}});
  EXPECT_DEATH(ChooseBatchShapes(dataset, {.max_tokens = 8}), "9 tokens in batches of 8");
  EXPECT_DEATH(ChooseBatchShapes(dataset, {.max_shapes = 0}), "0 shapes");
}

}  // namespace
}  // namespace thimble
