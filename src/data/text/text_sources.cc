#include "thimble/data/text/text_sources.h"

#include "thimble/base/check.h"

namespace thimble {
namespace {

// The first elements of each array: those of a batch, or of some rows of one, with this shape.
TokenArrays ArraysOf(const BatchShape& shape, std::span<const BatchField> fields,
                     BatchArrays arrays) {
  const auto array = [&](size_t i) {
    return ArrayOf<int32_t>(arrays[i].first(fields[i].BytesOf(shape)));
  };
  return {array(0), array(1), array(2), array(3), array(4)};
}

const BatchShape& ShapeOf(const TokenBatches& batches, const TokenBatch& batch) {
  return batches.shapes()[static_cast<size_t>(batch.shape)];
}

}  // namespace

std::vector<BatchField> SentenceFields() {
  constexpr int64_t kBytes = sizeof(int32_t);
  return {{.name = kSourceField, .source_bytes = kBytes},
          {.name = kSourceLengthsField, .sample_bytes = kBytes},
          {.name = kDecoderInputField, .target_bytes = kBytes},
          {.name = kTargetField, .target_bytes = kBytes},
          {.name = kTargetLengthsField, .sample_bytes = kBytes}};
}

TextTraining::TextTraining(const TextDataset& dataset, const BatchLimits& limits, uint64_t seed)
    : batches_(dataset, limits, seed) {}

std::vector<BatchShape> TextTraining::Shapes() const {
  return {batches_.shapes().begin(), batches_.shapes().end()};
}

StepBatch TextTraining::StepAt(int64_t step) const {
  const TokenBatch batch = batches_.BatchAt(step);
  return {batch.epoch, ShapeOf(batches_, batch)};
}

int64_t TextTraining::CountAt(int64_t step) const {
  return batches_.TargetTokens(batches_.BatchAt(step));
}

void TextTraining::SamplesOf(int64_t step, const SampleRange& range,
                             std::span<int32_t> samples) const {
  THIMBLE_CHECK(std::ssize(samples) == range.count, "space for {} indices, expected {}",
                samples.size(), range.count);
  const TokenBatch batch = batches_.BatchAt(step);
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t row = range.first + i;
    samples[static_cast<size_t>(i)] =
        row < batch.pairs ? static_cast<int32_t>(batches_.PairAt(batch, row)) : 0;
  }
}

Result<void> TextTraining::FillSamples(int64_t step, const SampleRange& range,
                                       BatchArrays arrays) const {
  const TokenBatch batch = batches_.BatchAt(step);
  const BatchShape shape = ShapeOf(batches_, batch).With(range.count);
  return batches_.FillRows(batch, range, ArraysOf(shape, fields_, arrays));
}

TextEvaluation::TextEvaluation(const TextDataset& dataset, const BatchLimits& limits)
    : batches_(dataset, limits, std::nullopt) {}

BatchShape TextEvaluation::ShapeAt(int64_t number) const {
  return ShapeOf(batches_, batches_.BatchAt(number));
}

int64_t TextEvaluation::CountAt(int64_t number) const {
  return batches_.TargetTokens(batches_.BatchAt(number));
}

Result<void> TextEvaluation::Fill(int64_t number, BatchArrays arrays) const {
  const TokenBatch batch = batches_.BatchAt(number);
  return batches_.Fill(batch, ArraysOf(ShapeOf(batches_, batch), fields_, arrays));
}

}  // namespace thimble
