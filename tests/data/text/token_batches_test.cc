#include "thimble/data/text/token_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "tests/data/text/text_fixtures.h"

namespace thimble {
namespace {

// Memory for a batch of one shape, filled with a value that no batch has.
struct TokenMemory {
  explicit TokenMemory(const BatchShape& shape)
      : source(shape.samples * shape.source_length, -7),
        source_lengths(shape.samples, -7),
        decoder_input(shape.samples * shape.target_length, -7),
        target(decoder_input),
        target_lengths(source_lengths) {}
  TokenArrays arrays() { return {source, source_lengths, decoder_input, target, target_lengths}; }
  friend bool operator==(const TokenMemory&, const TokenMemory&) = default;

  std::vector<int32_t> source, source_lengths, decoder_input, target, target_lengths;
};

TokenMemory FilledAt(const TokenBatches& batches, int64_t step) {
  const TokenBatch batch = batches.BatchAt(step);
  TokenMemory memory(batches.shapes()[batch.shape]);
  EXPECT_TRUE(batches.Fill(batch, memory.arrays()).ok());
  return memory;
}

// The pairs of an epoch in their order.
std::vector<int64_t> PairsOfEpoch(const TokenBatches& batches, int64_t epoch) {
  std::vector<int64_t> pairs;
  const int64_t first = epoch * batches.batches_per_epoch();
  for (int64_t step = first; step < first + batches.batches_per_epoch(); ++step) {
    const TokenBatch batch = batches.BatchAt(step);
    EXPECT_EQ(batch.epoch, epoch);
    for (int64_t row = 0; row < batch.pairs; ++row) pairs.push_back(batches.PairAt(batch, row));
  }
  return pairs;
}

void ExpectEveryPairOnce(const TextDataset& dataset, const TokenBatches& batches) {
  for (const int64_t epoch : {0, 1, 77}) {
    const auto pairs = PairsOfEpoch(batches, epoch);
    EXPECT_EQ(std::ssize(pairs), dataset.size());
    EXPECT_EQ(std::ssize(std::set<int64_t>(pairs.begin(), pairs.end())), dataset.size());
  }
}

TEST(TokenBatchesTest, EveryPairIsInAnEpochOnce) {
  for (const int64_t size : {1, 2, 17, 700}) {
    const NumberedPairs dataset(RandomLengths(size, 60, 1));
    for (const int32_t max_shapes : {1, 3, 32}) {
      const BatchLimits limits = {.max_tokens = 240, .max_shapes = max_shapes};
      ExpectEveryPairOnce(dataset, TokenBatches(dataset, limits, 5));
      ExpectEveryPairOnce(dataset, TokenBatches(dataset, limits, std::nullopt));
    }
  }
}

TEST(TokenBatchesTest, TheOrderDependsOnSeedAndEpoch) {
  const NumberedPairs dataset(RandomLengths(500, 60, 2));
  const BatchLimits limits = {.max_tokens = 240, .max_shapes = 8};
  const TokenBatches batches(dataset, limits, 1);
  EXPECT_NE(PairsOfEpoch(batches, 0), PairsOfEpoch(batches, 1));
  EXPECT_EQ(PairsOfEpoch(batches, 3), PairsOfEpoch(TokenBatches(dataset, limits, 1), 3));
  EXPECT_NE(PairsOfEpoch(batches, 0), PairsOfEpoch(TokenBatches(dataset, limits, 2), 0));
}

TEST(TokenBatchesTest, PairsOfAShapeMeetOthersInEachEpoch) {
  const NumberedPairs dataset(std::vector<PairLength>(200, {10, 10}));
  const TokenBatches batches(dataset, {.max_tokens = 100, .max_shapes = 8}, 1);
  ASSERT_EQ(batches.shapes().size(), 1U);
  std::set<std::set<int64_t>> companies;
  for (int64_t step = 0; step < 3 * batches.batches_per_epoch(); ++step) {
    const TokenBatch batch = batches.BatchAt(step);
    std::set<int64_t> company;
    for (int64_t row = 0; row < batch.pairs; ++row) company.insert(batches.PairAt(batch, row));
    EXPECT_TRUE(companies.insert(company).second);
  }
}

TEST(TokenBatchesTest, ShapesComeInRandomOrder) {
  const NumberedPairs dataset(RandomLengths(1000, 40, 2));
  const TokenBatches batches(dataset, {.max_tokens = 240, .max_shapes = 8}, 1);
  int64_t changes = 0;
  for (int64_t step = 1; step < batches.batches_per_epoch(); ++step) {
    changes += batches.BatchAt(step).shape != batches.BatchAt(step - 1).shape ? 1 : 0;
  }
  EXPECT_GT(changes, batches.batches_per_epoch() / 2);
}

TEST(TokenBatchesTest, WithoutASeedByRisingLengthAndInOrder) {
  const NumberedPairs dataset(RandomLengths(500, 60, 2));
  const TokenBatches batches(dataset, {.max_tokens = 240, .max_shapes = 8}, std::nullopt);
  EXPECT_EQ(PairsOfEpoch(batches, 0), PairsOfEpoch(batches, 1));
  int64_t last_pair = -1;
  int32_t last_shape = 0;
  for (int64_t step = 0; step < batches.batches_per_epoch(); ++step) {
    const TokenBatch batch = batches.BatchAt(step);
    EXPECT_GE(batch.shape, last_shape);
    if (batch.shape != last_shape) last_pair = -1;
    last_shape = batch.shape;
    for (int64_t row = 0; row < batch.pairs; ++row) {
      EXPECT_GT(batches.PairAt(batch, row), last_pair);
      last_pair = batches.PairAt(batch, row);
    }
  }
}

TEST(TokenBatchesTest, FillWritesPairsAndPadding) {
  // Two rows of (4, 3), the second pair shorter; the third row is empty in one of two batches.
  const NumberedPairs dataset({{4, 3}, {2, 2}, {4, 3}});
  const TokenBatches batches(dataset, {.max_tokens = 8, .max_shapes = 1}, std::nullopt);
  ASSERT_EQ(batches.shapes()[0], (BatchShape{2, 4, 3}));
  const TokenMemory first = FilledAt(batches, 0);
  EXPECT_EQ(first.source, (std::vector<int32_t>{4, 4, 4, 2, 5, 2, 1, 1}));
  EXPECT_EQ(first.source_lengths, (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(first.decoder_input, (std::vector<int32_t>{2, 4, 4, 2, 5, 1}));
  EXPECT_EQ(first.target, (std::vector<int32_t>{4, 4, 2, 5, 2, 1}));
  EXPECT_EQ(first.target_lengths, (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(batches.TargetTokens(batches.BatchAt(0)), 5);
  const TokenMemory second = FilledAt(batches, 1);
  EXPECT_EQ(second.source, (std::vector<int32_t>{6, 6, 6, 2, 1, 1, 1, 1}));
  EXPECT_EQ(second.source_lengths, (std::vector<int32_t>{4, 0}));
  EXPECT_EQ(second.decoder_input, (std::vector<int32_t>{2, 6, 6, 1, 1, 1}));
  EXPECT_EQ(second.target, (std::vector<int32_t>{6, 6, 2, 1, 1, 1}));
  EXPECT_EQ(second.target_lengths, (std::vector<int32_t>{3, 0}));
  EXPECT_EQ(batches.TargetTokens(batches.BatchAt(1)), 3);
}

TEST(TokenBatchesTest, AnyStepIsRepeatableOnItsOwn) {
  const NumberedPairs dataset(RandomLengths(500, 60, 3));
  const BatchLimits limits = {.max_tokens = 240, .max_shapes = 8};
  const TokenBatches batches(dataset, limits, 1);
  const TokenMemory late = FilledAt(batches, 1000);
  FilledAt(batches, 3);
  EXPECT_EQ(FilledAt(TokenBatches(dataset, limits, 1), 1000), late);
}

TEST(TokenBatchesTest, CountsPadding) {
  const NumberedPairs dataset(RandomLengths(700, 60, 4));
  const TokenBatches batches(dataset, {.max_tokens = 600, .max_shapes = 8}, 1);
  int64_t tokens = 0;
  int64_t padded = 0;
  for (int64_t step = 0; step < batches.batches_per_epoch(); ++step) {
    const TokenMemory memory = FilledAt(batches, step);
    padded += std::ssize(memory.source) + std::ssize(memory.target);
    tokens -= std::count(memory.source.begin(), memory.source.end(), Dictionary::kPad) +
              std::count(memory.target.begin(), memory.target.end(), Dictionary::kPad);
  }
  EXPECT_EQ(batches.padded_tokens_per_epoch(), padded);
  EXPECT_EQ(batches.tokens_per_epoch(), tokens + padded);
}

TEST(TokenBatchesTest, EmptyRowsAreFew) {
  const NumberedPairs dataset(RandomLengths(1000, 40, 5));
  const TokenBatches batches(dataset, {.max_tokens = 600, .max_shapes = 16}, 1);
  std::vector<int64_t> empty(batches.shapes().size());
  std::vector<int64_t> count(batches.shapes().size());
  for (int64_t step = 0; step < batches.batches_per_epoch(); ++step) {
    const TokenBatch batch = batches.BatchAt(step);
    EXPECT_GE(batch.pairs, 1);
    ++count[batch.shape];
    empty[batch.shape] += batches.shapes()[batch.shape].samples - batch.pairs;
  }
  for (size_t shape = 0; shape < count.size(); ++shape) EXPECT_LT(empty[shape], count[shape]);
}

// The same code batches both data sets of the task.
TEST(TokenBatchesTest, NumbersAndBitext) {
  const TestFolder folder("token_batches");
  WriteBitext(folder);
  folder.Write("valid.de", "ein haus .\nzwei ga@@ rten\n");  // without unknown words
  for (const std::string& spec : {std::string("numbers:2000,50"), "bitext:" + folder.path()}) {
    const auto data = OpenTextData(spec, {});
    ASSERT_TRUE(data.ok()) << data.error().message;
    for (const TextDataset* dataset :
         {data->train.get(), data->validation.get(), data->test.get()}) {
      const TokenBatches batches(*dataset, {.max_tokens = 1024, .max_shapes = 32}, 1);
      ExpectEveryPairOnce(*dataset, batches);
      for (int64_t step = 0; step < batches.batches_per_epoch(); ++step) {
        const TokenBatch batch = batches.BatchAt(step);
        const BatchShape& shape = batches.shapes()[batch.shape];
        const TokenMemory memory = FilledAt(batches, step);
        for (int64_t row = 0; row < batch.pairs; ++row) {
          const auto source =
              std::span(memory.source).subspan(row * shape.source_length, shape.source_length);
          EXPECT_EQ(dataset->source_dictionary().Line(source),
                    *dataset->SourceLine(batches.PairAt(batch, row)));
        }
      }
    }
  }
}

TEST(TokenBatchesTest, ErrorsOfTheDataSetComeThrough) {
  NumberedPairs dataset({{4, 3}, {2, 2}});
  dataset.broken_index = 1;
  const TokenBatches batches(dataset, {.max_tokens = 8, .max_shapes = 1}, 1);
  TokenMemory memory(batches.shapes()[0]);
  const auto filled = batches.Fill(batches.BatchAt(0), memory.arrays());
  ASSERT_FALSE(filled.ok());
  EXPECT_EQ(filled.error().message, "broken pair");
}

TEST(TokenBatchesDeathTest, WrongUse) {
  const NumberedPairs dataset({{4, 3}, {2, 2}});
  const TokenBatches batches(dataset, {.max_tokens = 8, .max_shapes = 1}, 1);
  TokenMemory memory({1, 4, 3});
  EXPECT_DEATH((void)batches.Fill(batches.BatchAt(0), memory.arrays()).ok(),
               "a source of 4 tokens and 1 lengths, expected 8 and 2");
  EXPECT_DEATH((void)batches.BatchAt(-1), "step -1");
  EXPECT_DEATH((void)batches.PairAt(batches.BatchAt(0), 2), "row 2 of 2");
  EXPECT_DEATH(TokenBatches(dataset, {.max_tokens = 3}, 1), "4 tokens in batches of 3");
}

}  // namespace
}  // namespace thimble
