#include "thimble/data/text/token_batches.h"

#include <algorithm>
#include <numeric>

#include "thimble/base/check.h"
#include "thimble/data/permutation.h"

namespace thimble {
namespace {

// Row `row` of an array of rows of `length` tokens.
std::span<int32_t> RowOf(std::span<int32_t> tokens, int64_t row, int64_t length) {
  return tokens.subspan(static_cast<size_t>(row * length), static_cast<size_t>(length));
}

void CheckTokenRoom(const BatchShape& shape, const TokenArrays& arrays) {
  const auto rows = static_cast<size_t>(shape.samples);
  const size_t source = rows * static_cast<size_t>(shape.source_length);
  const size_t target = rows * static_cast<size_t>(shape.target_length);
  THIMBLE_CHECK(arrays.source.size() == source && arrays.source_lengths.size() == rows,
                "a source of {} tokens and {} lengths, expected {} and {}", arrays.source.size(),
                arrays.source_lengths.size(), source, rows);
  THIMBLE_CHECK(arrays.target.size() == target && arrays.decoder_input.size() == target &&
                    arrays.target_lengths.size() == rows,
                "a target of {} tokens, {} for the decoder and {} lengths, expected {}, {} and {}",
                arrays.target.size(), arrays.decoder_input.size(), arrays.target_lengths.size(),
                target, target, rows);
}

void Pad(std::span<int32_t> tokens) { std::fill(tokens.begin(), tokens.end(), Dictionary::kPad); }

}  // namespace

TokenBatches::TokenBatches(const TextDataset& dataset, const BatchLimits& limits,
                           std::optional<uint64_t> shuffle_seed)
    : dataset_(dataset), shapes_(ChooseBatchShapes(dataset, limits)) {
  if (shuffle_seed) {
    batch_order_.emplace(*shuffle_seed, RandomPurpose::kTokenBatches);
    sentence_order_.emplace(*shuffle_seed, RandomPurpose::kSentences);
  }
  AssignPairs();
  first_batches_.assign(1, 0);
  for (size_t shape = 0; shape < shapes_.size(); ++shape) {
    const int64_t sentences = shapes_[shape].samples;
    const int64_t batches = (PairsOf(shape) + sentences - 1) / sentences;
    first_batches_.push_back(first_batches_.back() + batches);
  }
}

void TokenBatches::AssignPairs() {
  const auto shape_of = [&](int64_t pair) {
    const PairLength length = dataset_.LengthAt(pair);
    const auto holds = [&](const BatchShape& shape) { return Holds(shape, length); };
    return std::find_if(shapes_.begin(), shapes_.end(), holds) - shapes_.begin();
  };
  first_pairs_.assign(shapes_.size() + 1, 0);
  for (int64_t pair = 0; pair < dataset_.size(); ++pair) {
    const PairLength length = dataset_.LengthAt(pair);
    tokens_ += length.source + length.target;
    ++first_pairs_[static_cast<size_t>(shape_of(pair)) + 1];
  }
  std::partial_sum(first_pairs_.begin(), first_pairs_.end(), first_pairs_.begin());
  std::vector<int64_t> next = first_pairs_;
  pairs_.resize(static_cast<size_t>(dataset_.size()));
  for (int64_t pair = 0; pair < dataset_.size(); ++pair) {
    const int64_t place = next[static_cast<size_t>(shape_of(pair))]++;
    pairs_[static_cast<size_t>(place)] = static_cast<uint32_t>(pair);
  }
}

TokenBatch TokenBatches::BatchAt(int64_t step) const {
  const int64_t batches = batches_per_epoch();
  THIMBLE_CHECK(step >= 0 && step / batches <= UINT32_MAX, "step {}", step);
  const int64_t epoch = step / batches;
  int64_t batch = step % batches;
  if (batch_order_)
    batch = PermuteIndex(*batch_order_, static_cast<uint32_t>(epoch), batches, batch);
  const auto behind = std::upper_bound(first_batches_.begin(), first_batches_.end(), batch);
  const size_t shape = static_cast<size_t>(behind - first_batches_.begin()) - 1;
  const int64_t sentences = shapes_[shape].samples;
  const int64_t first = (batch - first_batches_[shape]) * sentences;
  return {epoch, static_cast<int32_t>(shape), first, std::min(sentences, PairsOf(shape) - first)};
}

int64_t TokenBatches::PairAt(const TokenBatch& batch, int64_t row) const {
  THIMBLE_CHECK(row >= 0 && row < batch.pairs, "row {} of {}", row, batch.pairs);
  const auto shape = static_cast<size_t>(batch.shape);
  int64_t position = batch.first + row;
  if (sentence_order_) {
    position = PermuteIndex(*sentence_order_, static_cast<uint32_t>(batch.epoch), PairsOf(shape),
                            position);
  }
  return pairs_[static_cast<size_t>(first_pairs_[shape] + position)];
}

int64_t TokenBatches::TargetTokens(const TokenBatch& batch) const {
  int64_t tokens = 0;
  for (int64_t row = 0; row < batch.pairs; ++row) {
    tokens += dataset_.LengthAt(PairAt(batch, row)).target;
  }
  return tokens;
}

Result<void> TokenBatches::Fill(const TokenBatch& batch, const TokenArrays& arrays) const {
  return FillRows(batch, {0, shapes_[static_cast<size_t>(batch.shape)].samples}, arrays);
}

Result<void> TokenBatches::FillRows(const TokenBatch& batch, const SampleRange& rows,
                                    const TokenArrays& arrays) const {
  const BatchShape shape = shapes_[static_cast<size_t>(batch.shape)].With(rows.count);
  CheckTokenRoom(shape, arrays);
  Pad(arrays.source);
  Pad(arrays.decoder_input);
  Pad(arrays.target);
  std::fill(arrays.source_lengths.begin(), arrays.source_lengths.end(), 0);
  std::fill(arrays.target_lengths.begin(), arrays.target_lengths.end(), 0);
  const int64_t filled = std::min(rows.count, batch.pairs - rows.first);
  for (int64_t row = 0; row < filled; ++row) {
    THIMBLE_TRY(FillRow(PairAt(batch, rows.first + row), row, shape, arrays));
  }
  return {};
}

Result<void> TokenBatches::FillRow(int64_t pair, int64_t row, const BatchShape& shape,
                                   const TokenArrays& arrays) const {
  const PairLength length = dataset_.LengthAt(pair);
  const auto source = RowOf(arrays.source, row, shape.source_length).first(length.source);
  const auto target = RowOf(arrays.target, row, shape.target_length).first(length.target);
  THIMBLE_TRY(dataset_.Read(pair, source, target));
  const auto input = RowOf(arrays.decoder_input, row, shape.target_length);
  input.front() = Dictionary::kEnd;
  std::copy(target.begin(), target.end() - 1, input.begin() + 1);
  arrays.source_lengths[static_cast<size_t>(row)] = length.source;
  arrays.target_lengths[static_cast<size_t>(row)] = length.target;
  return {};
}

int64_t TokenBatches::padded_tokens_per_epoch() const {
  int64_t tokens = 0;
  for (size_t shape = 0; shape < shapes_.size(); ++shape) {
    tokens += (first_batches_[shape + 1] - first_batches_[shape]) * TokensOf(shapes_[shape]);
  }
  return tokens;
}

}  // namespace thimble
