// Packed tensors: only the active elements are stored, one after the other, in the order of their
// positions. Several tensors share one pool of numbers and one pattern, which says what is active:
//
//   pattern    a bit for each position of the first tensor, then of the second, …; each tensor
//              begins at a multiple of kPatternBlock positions. Behind the bits, for each block of
//              positions: how many positions before it are active; in the end, how many in all.
//   pool       the active numbers of the first tensor, then those of the second, …
//
// So a position is found in the pool by one start and by counting bits within a block. How many
// numbers a tensor has is data: rewiring moves numbers from one tensor to another.
//
// GPU code includes this header.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "thimble/tensor/dtype.h"

namespace thimble {

inline constexpr int64_t kPatternBlock = 256;  // positions for one start: 1/8 of the bits' bytes
inline constexpr int64_t kPatternWordBits = 32;
inline constexpr int64_t kPatternBlockWords = kPatternBlock / kPatternWordBits;

// Blocks for a tensor of so many elements; positions behind its last element are never active.
constexpr int64_t PatternBlocks(int64_t elements) {
  return (elements + kPatternBlock - 1) / kPatternBlock;
}
// Words of 32 bits of a pattern of so many blocks: bits, then starts.
constexpr int64_t PatternWords(int64_t blocks) { return blocks * kPatternBlockWords + blocks + 1; }
constexpr int64_t BlocksOfPattern(int64_t words) { return (words - 1) / (kPatternBlockWords + 1); }
// The bits of a word that are elements, if `elements` are left from its first bit on.
constexpr uint32_t PatternElementBits(int64_t elements) {
  if (elements <= 0) return 0;
  return elements >= kPatternWordBits ? UINT32_MAX : (uint32_t{1} << elements) - 1;
}

// Numbers in a pool for `active` ones of so many tensors. In 8 bits a tensor begins at a block of
// its own, so that no two tensors share a scale.
constexpr int64_t PoolNumbers(DType dtype, int64_t active, int64_t tensors) {
  if (dtype != DType::kQ8) return active;
  constexpr auto kBlock = static_cast<int64_t>(kQ8BlockNumbers);
  return (active / kBlock + tensors) * kBlock;
}

// The place of one tensor in a pattern and in the pools that share it. Null for dense tensors.
struct PackedPlace {
  const uint32_t* bits = nullptr;    // of its first position on
  const uint32_t* starts = nullptr;  // of its first block on; the last is its end
  int64_t blocks = 0;
  int64_t tensor = 0;  // index among the tensors of the pool

  constexpr bool is_packed() const { return bits != nullptr; }
  // Of the pool's numbers, those in [begin, begin + count) are this tensor's.
  constexpr size_t begin() const { return starts[0]; }
  constexpr size_t count() const { return starts[blocks] - starts[0]; }

  // How many of the tensor's elements before this one are active: its place among them.
  constexpr size_t Rank(size_t element) const {
    const size_t block = element / kPatternBlock;
    const size_t word = element / kPatternWordBits;
    size_t rank = starts[block] - starts[0];
    for (size_t w = block * kPatternBlockWords; w < word; ++w) {
      rank += static_cast<size_t>(std::popcount(bits[w]));
    }
    const size_t bit = element % kPatternWordBits;
    if (bit == 0) return rank;  // the word may be behind the last one
    return rank + static_cast<size_t>(std::popcount(bits[word] & ((uint32_t{1} << bit) - 1)));
  }
  constexpr bool IsActive(size_t element) const {
    return (bits[element / kPatternWordBits] >> (element % kPatternWordBits) & 1) != 0;
  }

  // Bytes from the beginning of a pool of this type to the tensor's first number.
  constexpr size_t OffsetBytes(DType dtype) const {
    if (dtype != DType::kQ8) return begin() * SizeBytes(dtype);
    return (begin() / kQ8BlockNumbers + static_cast<size_t>(tensor)) * kQ8BlockBytes;
  }
};

// The place of the tensor whose first block is `first_block`, in a pattern of `pattern_blocks`.
inline PackedPlace PackedPlaceIn(const void* pattern, int64_t pattern_blocks, int64_t first_block,
                                 int64_t elements, int64_t tensor) {
  const auto* bits = static_cast<const uint32_t*>(pattern);
  const uint32_t* starts = bits + pattern_blocks * kPatternBlockWords;
  return {bits + first_block * kPatternBlockWords, starts + first_block, PatternBlocks(elements),
          tensor};
}

}  // namespace thimble
