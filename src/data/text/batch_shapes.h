// Batch shapes: how many sentences, and of what lengths, the batches of a data set have. There are
// only a few shapes, chosen for the lengths of all pairs, so that every batch is known before the
// first step and little of it is padding.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/data/text/text_dataset.h"
#include "thimble/tensor/batch_shape.h"

namespace thimble {

// Whether a pair fits in batches of this shape. Lengths count </s>; shorter sentences are padded.
inline bool Holds(const BatchShape& shape, const PairLength& pair) {
  return pair.source <= shape.source_length && pair.target <= shape.target_length;
}

// Of both sides, padding included.
inline int64_t TokensOf(const BatchShape& shape) {
  return shape.samples * (shape.source_length + shape.target_length);
}

struct BatchLimits {
  // The largest BatchShape::size(), as fairseq's --max-tokens has it. At least the longest sentence
  // of the data set.
  int32_t max_tokens = 4000;
  // Every shape needs plans of its own.
  int32_t max_shapes = 32;
};

// Shapes for all pairs of a data set, by rising source_length + target_length; a pair belongs to
// the first one that holds it. At least one and at most max_shapes; fewer if more would not pay.
//
// Found by a search for the least padding, plus something for each batch: shapes are added one by
// one where they save most, and after each the lengths of all are changed as long as that helps.
// `samples` is the number that spreads a shape's pairs evenly over as few batches as the limit
// allows, so that fewer rows of an epoch are empty than it has batches.
//
// Requires max_shapes >= 1. A pure function of the lengths and the limits; reads all lengths once.
// Takes half a second for 160,000 pairs of real text and 32 shapes.
std::vector<BatchShape> ChooseBatchShapes(const TextDataset& dataset, const BatchLimits& limits);

}  // namespace thimble
