// BatchParts: splits training batches into parts. Samples and their order are the same as without
// parts. Steps may have different numbers of parts; part k of step s has the number s * P + k,
// where P is the largest of these numbers.
//
//   batches of 7 and 4 samples in parts of at most 3:
//                                    part    0 1 2 | 3 4
//                                    step    0     | 1
//                                    samples 3 2 2 | 2 2
#pragma once

#include <map>

#include "thimble/base/function_ref.h"
#include "thimble/base/nearly_equal_parts.h"
#include "thimble/data/batch_source.h"

namespace thimble {

struct BatchPart {
  int64_t step = 0;
  StepBatch batch;      // the whole batch
  SampleRange samples;  // of the batch; its last rows may be beyond, and are then empty

  BatchShape shape() const { return batch.shape.With(samples.count); }
  bool last() const { return samples.first + samples.count >= batch.shape.samples; }
  friend bool operator==(const BatchPart&, const BatchPart&) = default;
};

class BatchParts final : public BatchSource {
 public:
  // `cut` says in which parts a batch of this shape is trained. `batches` must outlive this.
  BatchParts(const TrainingSource& batches,
             FunctionRef<NearlyEqualParts(const BatchShape& shape)> cut);

  BatchPart PartAt(int64_t part) const;
  // The number of the first part of a step; the others follow (After).
  int64_t FirstPart(int64_t step) const { return step * most_parts_; }
  int64_t NumParts(int64_t step) const { return CutOf(step).parts; }
  // Indices in the data set, as TrainingSource::SamplesOf writes them.
  void Samples(int64_t part, std::span<int32_t> samples) const;

  std::span<const BatchField> fields() const override { return batches_.fields(); }
  BatchShape ShapeAt(int64_t part) const override { return PartAt(part).shape(); }
  int64_t After(int64_t part) const override;
  Result<void> Fill(int64_t part, BatchArrays arrays) const override;

 private:
  const NearlyEqualParts& CutOf(int64_t step) const;

  const TrainingSource& batches_;
  std::map<BatchShape, NearlyEqualParts> cuts_;
  int64_t most_parts_ = 1;
};

}  // namespace thimble
