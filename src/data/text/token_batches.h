// TokenBatches: which pairs of sentences belong to which step, in batches of about equally many
// tokens. Pairs of similar lengths are together; the batches of an epoch, and the pairs of one
// shape among its batches, are in an order that is computed from (seed, epoch), not stored. Every
// pair is in exactly one batch of an epoch.
//
//   const TokenBatches batches(*data.train, {.max_tokens = 4000}, seed);
//   const TokenBatch batch = batches.BatchAt(step);
//   const BatchShape& shape = batches.shapes()[batch.shape];  // (B, S, T)
//   THIMBLE_TRY(batches.Fill(batch, arrays));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "thimble/base/philox.h"
#include "thimble/base/result.h"
#include "thimble/data/batch_source.h"
#include "thimble/data/text/batch_shapes.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {

struct TokenBatch {
  int64_t epoch = 0;
  int32_t shape = 0;  // index in shapes()
  int64_t first = 0;  // position of its first pair in the epoch's order of the pairs of this shape
  int64_t pairs = 0;  // 1 to the shape's sentences; the other rows of the batch are empty
  friend bool operator==(const TokenBatch&, const TokenBatch&) = default;
};

// Memory for B rows of a batch with lengths S and T; the caller owns it.
struct TokenArrays {
  std::span<int32_t> source;          // (B, S), then <pad>
  std::span<int32_t> source_lengths;  // (B); 0 in empty rows
  std::span<int32_t> decoder_input;   // (B, T): </s>, then the target but for its last token
  std::span<int32_t> target;          // (B, T), then <pad>
  std::span<int32_t> target_lengths;  // (B); 0 in empty rows
};

class TokenBatches {
 public:
  // Shuffled by the seed; without one, every epoch has the batches by rising length, and the pairs
  // in the order of the data set (evaluation). Needs four bytes per pair. `dataset` must outlive
  // this. Requires what ChooseBatchShapes requires.
  TokenBatches(const TextDataset& dataset, const BatchLimits& limits,
               std::optional<uint64_t> shuffle_seed);

  // All batches have one of these shapes.
  std::span<const BatchShape> shapes() const { return shapes_; }
  int64_t batches_per_epoch() const { return first_batches_.back(); }
  // Requires step >= 0 and fewer than 2^32 epochs.
  TokenBatch BatchAt(int64_t step) const;
  // The index in the data set of the pair in row `row`, less than batch.pairs.
  int64_t PairAt(const TokenBatch& batch, int64_t row) const;
  // Tokens of all targets in the batch, each </s> included: what its loss is divided by.
  int64_t TargetTokens(const TokenBatch& batch) const;

  // Writes the batch. The spans must have the sizes of its shape. Thread-safe; allocates nothing on
  // success.
  Result<void> Fill(const TokenBatch& batch, const TokenArrays& arrays) const;
  // The same for some of its rows, in spans for as many.
  Result<void> FillRows(const TokenBatch& batch, const SampleRange& rows,
                        const TokenArrays& arrays) const;

  // The tokens of all pairs, and with all padding, per epoch and of both sides together.
  int64_t tokens_per_epoch() const { return tokens_; }
  int64_t padded_tokens_per_epoch() const;

 private:
  // Sorts the pairs by shape.
  void AssignPairs();
  int64_t PairsOf(size_t shape) const { return first_pairs_[shape + 1] - first_pairs_[shape]; }
  Result<void> FillRow(int64_t pair, int64_t row, const BatchShape& shape,
                       const TokenArrays& arrays) const;

  const TextDataset& dataset_;
  std::vector<BatchShape> shapes_;
  std::optional<RandomSource> batch_order_;  // none: not shuffled
  std::optional<RandomSource> sentence_order_;
  std::vector<uint32_t> pairs_;         // by shape, then by index in the data set
  std::vector<int64_t> first_pairs_;    // of each shape in pairs_, and the number of pairs
  std::vector<int64_t> first_batches_;  // of each shape in an epoch, and the number of batches
  int64_t tokens_ = 0;
};

}  // namespace thimble
