// Batch shapes: how many sentences, and of what lengths, the batches of a data set have. There are
// only a few shapes, chosen for the lengths of all pairs, so that every batch is known before the
// first step and little of it is padding.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/data/text/text_dataset.h"

namespace thimble {

// Tokens per sentence, </s> included; shorter sentences are padded.
struct BatchShape {
  int32_t sentences = 0;
  int32_t source_length = 0;
  int32_t target_length = 0;

  bool Holds(const PairLength& pair) const {
    return pair.source <= source_length && pair.target <= target_length;
  }
  // Of both sides, padding included.
  int64_t tokens() const { return int64_t{sentences} * (source_length + target_length); }
  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

struct BatchLimits {
  // sentences * max(source_length, target_length) is at most this, as fairseq's --max-tokens has
  // it. At least the longest sentence of the data set.
  int32_t max_tokens = 4000;
  // Every shape needs plans of its own.
  int32_t max_shapes = 32;
};

// Shapes for all pairs of a data set, by rising source_length + target_length; a pair belongs to
// the first one that holds it. At least one and at most max_shapes; fewer if more would not pay.
//
// The lengths of the source are cut into intervals, and within each of them those of the target, so
// that the padding, plus something for each batch, is as little as it can be with cuts at up to 48
// places on either side (dynamic programming). `sentences` is the number that spreads a shape's
// pairs evenly over as few batches as the limit allows: at most one sentence per batch is missing
// in an epoch.
//
// Requires max_shapes >= 1. Reads all lengths four times; needs about half a megabyte for the time
// of the call.
std::vector<BatchShape> ChooseBatchShapes(const TextDataset& dataset, const BatchLimits& limits);

}  // namespace thimble
