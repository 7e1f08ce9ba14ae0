// Patterns of packed tensors (packed.h) as a whole: what a valid one is, and how the first one of a
// training is drawn.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/base/result.h"
#include "thimble/tensor/packed.h"

namespace thimble {

// Blocks for tensors of so many elements each.
int64_t PatternBlocks(std::span<const int64_t> tensors);

// Whether the words are a pattern for tensors of so many elements: its size, no active position
// behind the last element of a tensor, starts that match the bits, no tensor without an active
// element, `active` active elements in all.
Result<void> CheckPattern(std::span<const int32_t> words, std::span<const int64_t> tensors,
                          int64_t active);

// Writes the starts that belong to the bits. `words` has PatternWords(blocks) words.
void SetStarts(std::span<int32_t> words, int64_t blocks);

// How many of a tensor's elements are active at the start: (1 - sparsity) of them, rounded as in
// the paper on dynamic sparse reparameterization, and at least one.
int64_t ActiveAtStart(int64_t elements, double sparsity);

// Writes a pattern with ActiveAtStart positions in each tensor, chosen uniformly at random: those
// with the smallest random keys. `words` has the words for these tensors.
void DrawPattern(std::span<int32_t> words, std::span<const int64_t> tensors, double sparsity,
                 uint64_t seed);

}  // namespace thimble
