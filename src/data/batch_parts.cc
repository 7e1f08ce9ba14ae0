#include "thimble/data/batch_parts.h"

#include "thimble/base/check.h"
#include "thimble/base/nearly_equal_parts.h"

namespace thimble {

BatchParts::BatchParts(const TrainBatches& batches, int64_t largest)
    : batches_(batches), largest_(largest) {
  THIMBLE_CHECK(largest >= 1, "parts of {}", largest);
  const int64_t last_step = batches.steps_per_epoch() - 1;
  parts_per_step_ = CutNearlyEqually(batches.CountAt(0), largest).parts;
  parts_per_epoch_ =
      last_step * parts_per_step_ + CutNearlyEqually(batches.CountAt(last_step), largest).parts;
}

int64_t BatchParts::FirstPart(int64_t step) const {
  const int64_t steps = batches_.steps_per_epoch();
  return step / steps * parts_per_epoch_ + step % steps * parts_per_step_;
}

BatchPart BatchParts::PartAt(int64_t part) const {
  THIMBLE_CHECK(part >= 0, "part {}", part);
  const int64_t in_epoch = part % parts_per_epoch_;
  const int64_t step =
      part / parts_per_epoch_ * batches_.steps_per_epoch() + in_epoch / parts_per_step_;
  const BatchRange whole = batches_.BatchAt(step);
  const NearlyEqualParts parts = CutNearlyEqually(whole.count, largest_);
  const int64_t index = in_epoch % parts_per_step_;
  const int64_t seen = parts.Begin(index);
  return {step, {whole.epoch, whole.first + seen, parts.Size(index)}, whole.count, seen};
}

void BatchParts::Samples(int64_t part, std::span<int32_t> samples) const {
  batches_.SamplesOf(PartAt(part).range, samples);
}

Result<void> BatchParts::Fill(int64_t part, std::span<uint8_t> images,
                              std::span<int32_t> labels) const {
  return batches_.FillRange(PartAt(part).range, images, labels);
}

}  // namespace thimble
