#include "thimble/data/batch_parts.h"

#include <algorithm>

#include "thimble/base/check.h"

namespace thimble {

BatchParts::BatchParts(const TrainingSource& batches,
                       FunctionRef<NearlyEqualParts(const BatchShape&)> cut)
    : batches_(batches) {
  for (const BatchShape& shape : batches.Shapes()) {
    const NearlyEqualParts parts = cut(shape);
    THIMBLE_CHECK(parts.parts >= 1 && parts.parts <= parts.total, "{} samples in {} parts",
                  parts.total, parts.parts);
    cuts_.emplace(shape, parts);
    most_parts_ = std::max(most_parts_, parts.parts);
  }
}

const NearlyEqualParts& BatchParts::CutOf(int64_t step) const {
  return cuts_.at(batches_.StepAt(step).shape);
}

BatchPart BatchParts::PartAt(int64_t part) const {
  THIMBLE_CHECK(part >= 0, "part {}", part);
  const int64_t step = part / most_parts_;
  const StepBatch batch = batches_.StepAt(step);
  const NearlyEqualParts& parts = cuts_.at(batch.shape);
  const int64_t index = part % most_parts_;
  THIMBLE_CHECK(index < parts.parts, "part {} of a batch in {} parts", index, parts.parts);
  return {step, batch, {parts.Begin(index), parts.Size(index)}};
}

int64_t BatchParts::After(int64_t part) const {
  const int64_t step = part / most_parts_;
  return part + 1 - FirstPart(step) < CutOf(step).parts ? part + 1 : FirstPart(step + 1);
}

void BatchParts::Samples(int64_t part, std::span<int32_t> samples) const {
  const BatchPart now = PartAt(part);
  batches_.SamplesOf(now.step, now.samples, samples);
}

Result<void> BatchParts::Fill(int64_t part, BatchArrays arrays) const {
  const BatchPart now = PartAt(part);
  return batches_.FillSamples(now.step, now.samples, arrays);
}

}  // namespace thimble
