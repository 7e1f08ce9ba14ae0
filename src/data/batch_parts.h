// BatchParts: splits training batches into parts, numbered consecutively over all steps. The images
// and their order are the same as without parts.
//
//   batch 7 in parts of at most 3:   part   0 1 2 | 3 4 5 | …
//                                    step   0     | 1     | …
//                                    images 3 2 2 | 3 2 2 | …
#pragma once

#include "thimble/base/function_ref.h"
#include "thimble/base/nearly_equal_parts.h"
#include "thimble/data/batches.h"

namespace thimble {

struct BatchPart {
  int64_t step = 0;
  BatchRange range;   // the images of the part
  int64_t batch = 0;  // images of the whole batch
  int64_t seen = 0;   // images of the batch in earlier parts

  bool last() const { return seen + range.count == batch; }
  friend bool operator==(const BatchPart&, const BatchPart&) = default;
};

class BatchParts final : public BatchSource {
 public:
  // `cut` returns the parts of a batch of `samples` samples. `batches` must outlive this.
  BatchParts(const TrainBatches& batches, FunctionRef<NearlyEqualParts(int64_t samples)> cut);

  BatchPart PartAt(int64_t part) const;
  // The number of the first part of a step.
  int64_t FirstPart(int64_t step) const;
  // Indices in the data set, as TrainBatches::Samples writes them.
  void Samples(int64_t part, std::span<int32_t> samples) const;

  int64_t image_bytes() const override { return batches_.image_bytes(); }
  int64_t CountAt(int64_t part) const override { return PartAt(part).range.count; }
  Result<void> Fill(int64_t part, std::span<uint8_t> images,
                    std::span<int32_t> labels) const override;

 private:
  const TrainBatches& batches_;
  NearlyEqualParts full_;  // parts of every step except the last of an epoch
  NearlyEqualParts last_;
  int64_t parts_per_epoch_ = 1;
};

}  // namespace thimble
