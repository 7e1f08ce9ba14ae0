#include "thimble/data/batch_parts.h"

#include <algorithm>

#include "thimble/base/check.h"

namespace thimble {

BatchParts::BatchParts(const TrainBatches& batches,
                       FunctionRef<NearlyEqualParts(int64_t samples)> cut)
    : batches_(batches),
      full_(cut(batches.CountAt(0))),
      last_(cut(batches.CountAt(batches.steps_per_epoch() - 1))) {
  for (const NearlyEqualParts& parts : {full_, last_}) {
    THIMBLE_CHECK(parts.parts >= 1 && parts.parts <= parts.total, "{} samples in {} parts",
                  parts.total, parts.parts);
  }
  parts_per_epoch_ = (batches.steps_per_epoch() - 1) * full_.parts + last_.parts;
}

int64_t BatchParts::FirstPart(int64_t step) const {
  const int64_t steps = batches_.steps_per_epoch();
  return step / steps * parts_per_epoch_ + step % steps * full_.parts;
}

BatchPart BatchParts::PartAt(int64_t part) const {
  THIMBLE_CHECK(part >= 0, "part {}", part);
  const int64_t steps = batches_.steps_per_epoch();
  const int64_t in_epoch = part % parts_per_epoch_;
  // The last step may have more parts than the others.
  const int64_t step_in_epoch = std::min(in_epoch / full_.parts, steps - 1);
  const int64_t step = part / parts_per_epoch_ * steps + step_in_epoch;
  const BatchRange whole = batches_.BatchAt(step);
  const NearlyEqualParts& parts = step_in_epoch == steps - 1 ? last_ : full_;
  const int64_t index = in_epoch - step_in_epoch * full_.parts;
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
