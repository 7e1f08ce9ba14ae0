// Batches of images: which images belong to which step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/base/philox.h"
#include "thimble/base/result.h"
#include "thimble/data/batch_source.h"
#include "thimble/data/image_dataset.h"

namespace thimble {

inline constexpr const char* kImagesField = "images";  // u8 (B, H, W, C)
inline constexpr const char* kLabelsField = "labels";  // i32 (B)

// The arrays of batches of such images: images, then labels.
std::vector<BatchField> ImageFields(int64_t image_bytes);

// Part of one epoch: positions [first, first + count) of its order.
struct BatchRange {
  int64_t epoch = 0;
  int64_t first = 0;
  int64_t count = 0;
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

// ceil(images / batch): the last batch of an epoch may be smaller.
int64_t StepsPerEpoch(int64_t images, int64_t batch);

// Training: a new order in each epoch. Images are not augmented here: the graph does that, with
// random numbers that depend on the images' indices.
class TrainBatches final : public TrainingSource {
 public:
  // `dataset` must outlive this. Requires batch >= 1.
  TrainBatches(const ImageDataset& dataset, int64_t batch, uint64_t seed);

  // Requires step >= 0 and fewer than 2^32 epochs.
  BatchRange BatchAt(int64_t step) const;
  int64_t image_bytes() const { return dataset_.format().image_bytes(); }
  // Writes the index in the data set of each image of the step, modulo 2^32.
  void Samples(int64_t step, std::span<int32_t> samples) const;
  // Writes the images (N, H, W, C) and labels of the step to the beginning of the spans.
  Result<void> Fill(int64_t step, std::span<uint8_t> images, std::span<int32_t> labels) const;

  std::span<const BatchField> fields() const override { return fields_; }
  std::vector<BatchShape> Shapes() const override;
  int64_t steps_per_epoch() const override { return StepsPerEpoch(dataset_.size(), batch_); }
  StepBatch StepAt(int64_t step) const override;
  int64_t CountAt(int64_t step) const override { return BatchAt(step).count; }
  void SamplesOf(int64_t step, const SampleRange& range, std::span<int32_t> samples) const override;
  Result<void> FillSamples(int64_t step, const SampleRange& range,
                           BatchArrays arrays) const override;

 private:
  Result<void> FillRange(const BatchRange& range, std::span<uint8_t> images,
                         std::span<int32_t> labels) const;
  // Some images of a step.
  BatchRange RangeOf(int64_t step, const SampleRange& range) const;
  // The index in the data set of image `i` of a range.
  int64_t IndexOf(const BatchRange& range, int64_t i) const;

  const ImageDataset& dataset_;
  std::vector<BatchField> fields_;
  int64_t batch_;
  RandomSource shuffle_;
};

// Evaluation: every image once, in order, unchanged.
class EvalBatches final : public EvaluationSource {
 public:
  // `dataset` must outlive this. Requires batch >= 1.
  EvalBatches(const ImageDataset& dataset, int64_t batch);

  int64_t image_bytes() const { return dataset_.format().image_bytes(); }
  // As TrainBatches::Fill.
  Result<void> Fill(int64_t number, std::span<uint8_t> images, std::span<int32_t> labels) const;

  std::span<const BatchField> fields() const override { return fields_; }
  int64_t num_batches() const override { return StepsPerEpoch(dataset_.size(), batch_); }
  int64_t CountAt(int64_t number) const override;
  BatchShape ShapeAt(int64_t number) const override { return {CountAt(number)}; }
  Result<void> Fill(int64_t number, BatchArrays arrays) const override;

 private:
  const ImageDataset& dataset_;
  std::vector<BatchField> fields_;
  int64_t batch_;
};

}  // namespace thimble
