#include "thimble/data/text/text_sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/data/text/text_fixtures.h"
#include "thimble/data/batch_parts.h"

namespace thimble {
namespace {

constexpr BatchLimits kLimits = {.max_tokens = 40, .max_shapes = 3};

// The arrays of a batch, each with its numbers.
struct Arrays {
  Arrays(std::span<const BatchField> fields, const BatchShape& shape) {
    for (const BatchField& field : fields) {
      numbers.emplace_back(field.BytesOf(shape) / sizeof(int32_t), -7);
    }
    for (std::vector<int32_t>& array : numbers) {
      memory.push_back(std::as_writable_bytes(std::span(array)));
    }
  }
  std::vector<std::vector<int32_t>> numbers;
  std::vector<std::span<std::byte>> memory;
};

TEST(SentenceFields, HaveTheSizesOfTheirShapes) {
  const std::vector<BatchField> fields = SentenceFields();
  const BatchShape shape{3, 5, 7};
  std::vector<size_t> numbers;
  for (const BatchField& field : fields) numbers.push_back(field.BytesOf(shape) / 4);
  EXPECT_EQ(numbers, (std::vector<size_t>{15, 3, 21, 21, 3}));
}

// The parts of a step, one after the other, are the whole batch: all arrays, and the samples.
TEST(TextTraining, PartsAreTheBatch) {
  const NumberedPairs dataset({{3, 4}, {9, 2}, {5, 5}, {7, 8}, {3, 3}, {2, 9}, {4, 4}});
  const TextTraining training(dataset, kLimits, 1);
  const BatchParts whole(training, [](const BatchShape& shape) {
    return NearlyEqualParts{shape.samples, 1};
  });
  const BatchParts parts(
      training, [](const BatchShape& shape) { return CutNearlyEqually(shape.samples, 2); });
  for (int64_t step = 0; step < 2 * training.steps_per_epoch(); ++step) {
    const BatchShape shape = training.StepAt(step).shape;
    Arrays expected(training.fields(), shape);
    ASSERT_TRUE(whole.Fill(whole.FirstPart(step), expected.memory).ok());
    std::vector<int32_t> samples(static_cast<size_t>(shape.samples));
    whole.Samples(whole.FirstPart(step), samples);
    std::vector<std::vector<int32_t>> joined(expected.numbers.size());
    std::vector<int32_t> joined_samples;
    int64_t part = parts.FirstPart(step);
    for (int64_t i = 0; i < parts.NumParts(step); ++i, part = parts.After(part)) {
      const BatchShape of_part = parts.ShapeAt(part);
      EXPECT_EQ(of_part.source_length, shape.source_length);
      Arrays arrays(training.fields(), of_part);
      ASSERT_TRUE(parts.Fill(part, arrays.memory).ok());
      for (size_t field = 0; field < joined.size(); ++field) {
        joined[field].insert(joined[field].end(), arrays.numbers[field].begin(),
                             arrays.numbers[field].end());
      }
      std::vector<int32_t> part_samples(static_cast<size_t>(of_part.samples));
      parts.Samples(part, part_samples);
      joined_samples.insert(joined_samples.end(), part_samples.begin(), part_samples.end());
    }
    EXPECT_EQ(joined, expected.numbers) << step;
    EXPECT_EQ(joined_samples, samples) << step;
  }
}

TEST(TextTraining, CountsTargetTokens) {
  const NumberedPairs dataset({{3, 4}, {9, 2}, {5, 5}});
  const TextTraining training(dataset, kLimits, 1);
  int64_t tokens = 0;
  for (int64_t step = 0; step < training.steps_per_epoch(); ++step) {
    tokens += training.CountAt(step);
  }
  EXPECT_EQ(tokens, 4 + 2 + 5);
  for (const BatchShape& shape : training.Shapes()) EXPECT_LE(shape.size(), kLimits.max_tokens);
}

TEST(TextEvaluation, ShowsEveryPairOnce) {
  const NumberedPairs dataset({{3, 4}, {9, 2}, {5, 5}, {7, 8}});
  const TextEvaluation evaluation(dataset, kLimits);
  int64_t tokens = 0;
  int64_t sentences = 0;
  for (int64_t number = 0; number < evaluation.num_batches(); ++number) {
    Arrays arrays(evaluation.fields(), evaluation.ShapeAt(number));
    ASSERT_TRUE(evaluation.Fill(number, arrays.memory).ok());
    tokens += evaluation.CountAt(number);
    const auto& lengths = arrays.numbers[4];
    sentences += std::ranges::count_if(lengths, [](int32_t length) { return length > 0; });
  }
  EXPECT_EQ(tokens, 4 + 2 + 5 + 8);
  EXPECT_EQ(sentences, 4);
}

}  // namespace
}  // namespace thimble
