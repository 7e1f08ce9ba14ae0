// Moves the numbers of pools from one pattern to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "thimble/ops/rewire/rewire_rule.h"
#include "thimble/tensor/packed.h"
#include "thimble/tensor/tensor_view.h"

struct CUstream_st;

namespace thimble {

class ThreadPool;

// Both patterns, with starts. A position that is active in both keeps its number.
struct PatternChange {
  const uint32_t* old_words = nullptr;
  const uint32_t* new_words = nullptr;
  int64_t blocks = 0;

  constexpr const uint32_t* old_starts() const { return old_words + blocks * kPatternBlockWords; }
  constexpr const uint32_t* new_starts() const { return new_words + blocks * kPatternBlockWords; }
};

// Writes the numbers of `old_pool` in the order of the new pattern to `new_pool`, which has the
// same type and size and does not overlap it. Numbers that grow, and bytes of no number, become 0.
void MovePool(ThreadPool& pool, const PatternChange& change, std::span<const RewireTensor> tensors,
              const TensorView& old_pool, std::byte* new_pool);

// The same in the GPU's memory. `active` is the number of active positions of both patterns.
void MovePoolOnCuda(CUstream_st* stream, const PatternChange& change,
                    std::span<const RewireTensor> tensors, int64_t active,
                    const TensorView& old_pool, std::byte* new_pool);

}  // namespace thimble
