#include "thimble/data/batches.h"

#include <algorithm>
#include <iterator>

#include "thimble/base/check.h"
#include "thimble/data/permutation.h"

namespace thimble {
namespace {

void CheckRoom(int64_t count, int64_t image_bytes, std::span<uint8_t> images,
               std::span<int32_t> labels) {
  THIMBLE_CHECK(std::ssize(images) >= count * image_bytes, "{} bytes for {} images of {} bytes",
                images.size(), count, image_bytes);
  THIMBLE_CHECK(std::ssize(labels) >= count, "space for {} labels, expected {}", labels.size(),
                count);
}

// The pixels of image `i` of a batch.
std::span<uint8_t> PixelsAt(std::span<uint8_t> images, int64_t i, int64_t image_bytes) {
  return images.subspan(static_cast<size_t>(i * image_bytes), static_cast<size_t>(image_bytes));
}

}  // namespace

int64_t StepsPerEpoch(int64_t images, int64_t batch) {
  THIMBLE_CHECK(images >= 1 && batch >= 1, "{} images in batches of {}", images, batch);
  return (images - 1) / batch + 1;
}

TrainBatches::TrainBatches(const ImageDataset& dataset, int64_t batch, uint64_t seed)
    : dataset_(dataset), batch_(batch), shuffle_(seed, RandomPurpose::kShuffle) {
  THIMBLE_CHECK(batch >= 1, "batches of {}", batch);
}

BatchRange TrainBatches::BatchAt(int64_t step) const {
  const int64_t steps = steps_per_epoch();
  THIMBLE_CHECK(step >= 0 && step / steps <= UINT32_MAX, "step {}", step);
  const int64_t first = step % steps * batch_;
  return {step / steps, first, std::min(batch_, dataset_.size() - first)};
}

int64_t TrainBatches::IndexOf(const BatchRange& range, int64_t i) const {
  return PermuteIndex(shuffle_, static_cast<uint32_t>(range.epoch), dataset_.size(),
                      range.first + i);
}

Result<void> TrainBatches::Fill(int64_t step, std::span<uint8_t> images,
                                std::span<int32_t> labels) const {
  return FillRange(BatchAt(step), images, labels);
}

Result<void> TrainBatches::FillRange(const BatchRange& range, std::span<uint8_t> images,
                                     std::span<int32_t> labels) const {
  CheckRoom(range.count, image_bytes(), images, labels);
  for (int64_t i = 0; i < range.count; ++i) {
    THIMBLE_TRY(dataset_.Read(IndexOf(range, i), PixelsAt(images, i, image_bytes()), labels[i]));
  }
  return {};
}

void TrainBatches::Samples(int64_t step, std::span<int32_t> samples) const {
  SamplesOf(BatchAt(step), samples);
}

void TrainBatches::SamplesOf(const BatchRange& range, std::span<int32_t> samples) const {
  THIMBLE_CHECK(std::ssize(samples) == range.count, "space for {} indices, expected {}",
                samples.size(), range.count);
  for (int64_t i = 0; i < range.count; ++i) {
    samples[static_cast<size_t>(i)] =
        static_cast<int32_t>(static_cast<uint32_t>(IndexOf(range, i)));
  }
}

EvalBatches::EvalBatches(const ImageDataset& dataset, int64_t batch)
    : dataset_(dataset), batch_(batch) {
  THIMBLE_CHECK(batch >= 1, "batches of {}", batch);
}

int64_t EvalBatches::CountAt(int64_t step) const {
  THIMBLE_CHECK(step >= 0 && step < num_steps(), "step {} of {}", step, num_steps());
  return std::min(batch_, dataset_.size() - step * batch_);
}

Result<void> EvalBatches::Fill(int64_t step, std::span<uint8_t> images,
                               std::span<int32_t> labels) const {
  const int64_t count = CountAt(step);
  CheckRoom(count, image_bytes(), images, labels);
  for (int64_t i = 0; i < count; ++i) {
    THIMBLE_TRY(dataset_.Read(step * batch_ + i, PixelsAt(images, i, image_bytes()), labels[i]));
  }
  return {};
}

}  // namespace thimble
