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

std::vector<BatchField> ImageFields(int64_t image_bytes) {
  return {{.name = kImagesField, .sample_bytes = image_bytes},
          {.name = kLabelsField, .sample_bytes = sizeof(int32_t)}};
}

int64_t StepsPerEpoch(int64_t images, int64_t batch) {
  THIMBLE_CHECK(images >= 1 && batch >= 1, "{} images in batches of {}", images, batch);
  return (images - 1) / batch + 1;
}

TrainBatches::TrainBatches(const ImageDataset& dataset, int64_t batch, uint64_t seed)
    : dataset_(dataset),
      fields_(ImageFields(dataset.format().image_bytes())),
      batch_(batch),
      shuffle_(seed, RandomPurpose::kShuffle) {
  THIMBLE_CHECK(batch >= 1, "batches of {}", batch);
}

BatchRange TrainBatches::BatchAt(int64_t step) const {
  const int64_t steps = steps_per_epoch();
  THIMBLE_CHECK(step >= 0 && step / steps <= UINT32_MAX, "step {}", step);
  const int64_t first = step % steps * batch_;
  return {step / steps, first, std::min(batch_, dataset_.size() - first)};
}

StepBatch TrainBatches::StepAt(int64_t step) const {
  const BatchRange batch = BatchAt(step);
  return {batch.epoch, {batch.count}};
}

std::vector<BatchShape> TrainBatches::Shapes() const {
  std::vector<BatchShape> shapes = {{CountAt(0)}};
  if (const BatchShape last{CountAt(steps_per_epoch() - 1)}; last != shapes[0]) {
    shapes.push_back(last);
  }
  return shapes;
}

BatchRange TrainBatches::RangeOf(int64_t step, const SampleRange& range) const {
  const BatchRange batch = BatchAt(step);
  THIMBLE_CHECK(range.first >= 0 && range.count <= batch.count - range.first,
                "images {} to {} of a batch of {}", range.first, range.first + range.count,
                batch.count);
  return {batch.epoch, batch.first + range.first, range.count};
}

int64_t TrainBatches::IndexOf(const BatchRange& range, int64_t i) const {
  return PermuteIndex(shuffle_, static_cast<uint32_t>(range.epoch), dataset_.size(),
                      range.first + i);
}

Result<void> TrainBatches::Fill(int64_t step, std::span<uint8_t> images,
                                std::span<int32_t> labels) const {
  return FillRange(BatchAt(step), images, labels);
}

Result<void> TrainBatches::FillSamples(int64_t step, const SampleRange& range,
                                       BatchArrays arrays) const {
  return FillRange(RangeOf(step, range), ArrayOf<uint8_t>(arrays[0]), ArrayOf<int32_t>(arrays[1]));
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
  SamplesOf(step, {0, CountAt(step)}, samples);
}

void TrainBatches::SamplesOf(int64_t step, const SampleRange& range,
                             std::span<int32_t> samples) const {
  const BatchRange images = RangeOf(step, range);
  THIMBLE_CHECK(std::ssize(samples) == images.count, "space for {} indices, expected {}",
                samples.size(), images.count);
  for (int64_t i = 0; i < images.count; ++i) {
    samples[static_cast<size_t>(i)] =
        static_cast<int32_t>(static_cast<uint32_t>(IndexOf(images, i)));
  }
}

EvalBatches::EvalBatches(const ImageDataset& dataset, int64_t batch)
    : dataset_(dataset), fields_(ImageFields(dataset.format().image_bytes())), batch_(batch) {
  THIMBLE_CHECK(batch >= 1, "batches of {}", batch);
}

int64_t EvalBatches::CountAt(int64_t number) const {
  THIMBLE_CHECK(number >= 0 && number < num_batches(), "batch {} of {}", number, num_batches());
  return std::min(batch_, dataset_.size() - number * batch_);
}

Result<void> EvalBatches::Fill(int64_t number, BatchArrays arrays) const {
  return Fill(number, ArrayOf<uint8_t>(arrays[0]), ArrayOf<int32_t>(arrays[1]));
}

Result<void> EvalBatches::Fill(int64_t number, std::span<uint8_t> images,
                               std::span<int32_t> labels) const {
  const int64_t count = CountAt(number);
  CheckRoom(count, image_bytes(), images, labels);
  for (int64_t i = 0; i < count; ++i) {
    THIMBLE_TRY(dataset_.Read(number * batch_ + i, PixelsAt(images, i, image_bytes()), labels[i]));
  }
  return {};
}

}  // namespace thimble
