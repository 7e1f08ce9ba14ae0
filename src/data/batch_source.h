// Where batches come from: numbered batches of named arrays, the inputs of a network. Images and
// sentences are read through the same two interfaces, one for evaluation and one for training,
// where batches are cut into parts (batch_parts.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/tensor/batch_shape.h"

namespace thimble {

// An array of every batch: the input of the network with this name.
struct BatchField {
  std::string name;
  int64_t sample_bytes = 0;  // for each sample, and
  int64_t source_bytes = 0;  // for each of its source positions, and
  int64_t target_bytes = 0;  // for each of its target positions

  size_t BytesOf(const BatchShape& shape) const {
    return static_cast<size_t>(shape.samples * (sample_bytes + source_bytes * shape.source_length +
                                                target_bytes * shape.target_length));
  }
  friend bool operator==(const BatchField&, const BatchField&) = default;
};

// The memory of one batch: the bytes of each field, in the order of the fields.
using BatchArrays = std::span<const std::span<std::byte>>;

// The memory as numbers of this type.
template <class T>
std::span<T> ArrayOf(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};  // NOLINT: raw storage
}

// Batches that can be read one after the other, from any of them on.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  virtual std::span<const BatchField> fields() const = 0;
  virtual BatchShape ShapeAt(int64_t number) const = 0;
  // The number of the batch after this one.
  virtual int64_t After(int64_t number) const { return number + 1; }
  // Writes the batch to the beginning of the arrays, which must be large enough; the rest is
  // unchanged. Thread-safe; allocates nothing on success.
  virtual Result<void> Fill(int64_t number, BatchArrays arrays) const = 0;
};

// Every sample once. Numbers are 0 .. num_batches() - 1.
class EvaluationSource : public BatchSource {
 public:
  virtual int64_t num_batches() const = 0;
  // What a batch's loss and number of correct answers refer to: its images, or its target tokens.
  virtual int64_t CountAt(int64_t number) const = 0;
};

// The batch of a training step.
struct StepBatch {
  int64_t epoch = 0;
  BatchShape shape = {};
  friend bool operator==(const StepBatch&, const StepBatch&) = default;
};

// Consecutive samples of a batch.
struct SampleRange {
  int64_t first = 0;
  int64_t count = 0;
  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

// The batches of training, in a new order in each epoch. A batch depends on its step alone, not on
// earlier reads, so any step can be repeated by itself, and a resumed run continues as if it had
// never stopped.
class TrainingSource {
 public:
  virtual ~TrainingSource() = default;

  virtual std::span<const BatchField> fields() const = 0;
  // Shapes of all batches.
  virtual std::vector<BatchShape> Shapes() const = 0;
  virtual int64_t steps_per_epoch() const = 0;
  // Requires step >= 0 and fewer than 2^32 epochs.
  virtual StepBatch StepAt(int64_t step) const = 0;
  // As EvaluationSource::CountAt.
  virtual int64_t CountAt(int64_t step) const = 0;
  // Writes the index in the data set, modulo 2^32, of some samples of a step.
  virtual void SamplesOf(int64_t step, const SampleRange& range,
                         std::span<int32_t> samples) const = 0;
  // Writes these samples, as BatchSource::Fill does.
  virtual Result<void> FillSamples(int64_t step, const SampleRange& range,
                                   BatchArrays arrays) const = 0;
};

}  // namespace thimble
