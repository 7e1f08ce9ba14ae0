// Batches: which images belong to which step. Everything depends on the step alone, not on earlier
// reads, so any step can be repeated by itself and a resumed run continues as if it had never
// stopped.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/base/philox.h"
#include "thimble/base/result.h"
#include "thimble/data/image_dataset.h"

namespace thimble {

// Where the prefetcher reads batches from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual int64_t image_bytes() const = 0;
  // Images in the batch of `step`.
  virtual int64_t CountAt(int64_t step) const = 0;
  // Writes CountAt(step) images, (N, H, W, C), and labels to the beginning of the spans, which must
  // be large enough; the rest is unchanged. Thread-safe; allocates nothing on success.
  virtual Result<void> Fill(int64_t step, std::span<uint8_t> images,
                            std::span<int32_t> labels) const = 0;
};

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
class TrainBatches final : public BatchSource {
 public:
  // `dataset` must outlive this. Requires batch >= 1.
  TrainBatches(const ImageDataset& dataset, int64_t batch, uint64_t seed);

  int64_t steps_per_epoch() const { return StepsPerEpoch(dataset_.size(), batch_); }
  // Requires step >= 0 and fewer than 2^32 epochs.
  BatchRange BatchAt(int64_t step) const;
  // Writes the index in the data set of each image of the step or range, modulo 2^32. Requires one
  // element per image.
  void Samples(int64_t step, std::span<int32_t> samples) const;
  void SamplesOf(const BatchRange& range, std::span<int32_t> samples) const;
  // Like Fill, for part of an epoch.
  Result<void> FillRange(const BatchRange& range, std::span<uint8_t> images,
                         std::span<int32_t> labels) const;

  int64_t image_bytes() const override { return dataset_.format().image_bytes(); }
  int64_t CountAt(int64_t step) const override { return BatchAt(step).count; }
  Result<void> Fill(int64_t step, std::span<uint8_t> images,
                    std::span<int32_t> labels) const override;

 private:
  // The index in the data set of image `i` of a batch.
  int64_t IndexOf(const BatchRange& range, int64_t i) const;

  const ImageDataset& dataset_;
  int64_t batch_;
  RandomSource shuffle_;
};

// Evaluation: every image once, in order, unchanged. Steps are 0 .. num_steps() - 1.
class EvalBatches final : public BatchSource {
 public:
  // `dataset` must outlive this. Requires batch >= 1.
  EvalBatches(const ImageDataset& dataset, int64_t batch);

  int64_t num_steps() const { return StepsPerEpoch(dataset_.size(), batch_); }

  int64_t image_bytes() const override { return dataset_.format().image_bytes(); }
  int64_t CountAt(int64_t step) const override;
  Result<void> Fill(int64_t step, std::span<uint8_t> images,
                    std::span<int32_t> labels) const override;

 private:
  const ImageDataset& dataset_;
  int64_t batch_;
};

}  // namespace thimble
