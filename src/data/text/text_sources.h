// Batches of sentences for training and evaluation: TokenBatches as sources of named arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/data/batch_source.h"
#include "thimble/data/text/token_batches.h"

namespace thimble {

// The arrays of a batch of sentences, all i32, in the order of TokenArrays.
inline constexpr const char* kSourceField = "source";                 // (B, S)
inline constexpr const char* kSourceLengthsField = "source_lengths";  // (B)
inline constexpr const char* kDecoderInputField = "decoder_input";    // (B, T), the tokens before
inline constexpr const char* kTargetField = "target";                 // (B, T), the next tokens
inline constexpr const char* kTargetLengthsField = "target_lengths";  // (B)

std::vector<BatchField> SentenceFields();

class TextTraining final : public TrainingSource {
 public:
  // `dataset` must outlive this. Requires what TokenBatches requires.
  TextTraining(const TextDataset& dataset, const BatchLimits& limits, uint64_t seed);

  const TokenBatches& batches() const { return batches_; }

  std::span<const BatchField> fields() const override { return fields_; }
  std::vector<BatchShape> Shapes() const override;
  int64_t steps_per_epoch() const override { return batches_.batches_per_epoch(); }
  StepBatch StepAt(int64_t step) const override;
  int64_t CountAt(int64_t step) const override;
  // Empty rows have the sample 0.
  void SamplesOf(int64_t step, const SampleRange& range, std::span<int32_t> samples) const override;
  Result<void> FillSamples(int64_t step, const SampleRange& range,
                           BatchArrays arrays) const override;

 private:
  std::vector<BatchField> fields_ = SentenceFields();
  TokenBatches batches_;
};

class TextEvaluation final : public EvaluationSource {
 public:
  // As TextTraining; batches by rising length.
  TextEvaluation(const TextDataset& dataset, const BatchLimits& limits);

  std::span<const BatchField> fields() const override { return fields_; }
  int64_t num_batches() const override { return batches_.batches_per_epoch(); }
  BatchShape ShapeAt(int64_t number) const override;
  int64_t CountAt(int64_t number) const override;
  Result<void> Fill(int64_t number, BatchArrays arrays) const override;

 private:
  std::vector<BatchField> fields_ = SentenceFields();
  TokenBatches batches_;
};

}  // namespace thimble
