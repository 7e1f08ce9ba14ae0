// The tensors that one launch of accumulate works on. The list is passed as a kernel argument, and
// blocks look up their tensor in it.
#pragma once

#include <cstdint>

#include "thimble/tensor/number_pointer.h"

namespace thimble {

// Arrays: (elements). `next` may be `sum`. If they are packed (tensor/packed.h), they are advanced
// by as many elements as if they were dense from the beginning of their pools on.
struct AccumulateTensor {
  ConstNumbers sum = {};
  ConstNumbers x = {};
  Numbers next = {};
  int elements = 0;
  int first_block = 0;  // first block that works on it; set by Add
  // If the arrays are packed, on the device: how many elements are active before each block.
  const uint32_t* starts = nullptr;
  int blocks = 0;
  int64_t begin = 0;  // of a split tensor: the piece's first element

  constexpr bool all_have(DType type) const {
    return sum.type == type && x.type == type && next.type == type;
  }
};

inline constexpr int kAccumulateThreads = 256;
// Each thread works on four elements at once.
inline constexpr int kAccumulateBlockElements = 4 * kAccumulateThreads;
// A backward pass has only a few consecutive ones.
inline constexpr int kMaxAccumulateTensors = 16;

struct AccumulateTensors {
  AccumulateTensor tensors[kMaxAccumulateTensors];
  const int32_t* seen =
      nullptr;  // on the device, so that a captured launch reads the current value
  int num_tensors = 0;
  int num_blocks = 0;

  constexpr bool full() const { return num_tensors == kMaxAccumulateTensors; }
  // Requires space in the list. Ignores empty tensors.
  constexpr void Add(AccumulateTensor tensor) {
    if (tensor.elements == 0) return;
    tensor.first_block = num_blocks;
    num_blocks += (tensor.elements - 1) / kAccumulateBlockElements + 1;
    tensors[num_tensors++] = tensor;
  }
  constexpr void Clear() { num_tensors = num_blocks = 0; }
  // The index of the tensor that a block below num_blocks works on.
  constexpr int Find(int block) const {
    int index = num_tensors - 1;
    while (tensors[index].first_block > block) --index;
    return index;
  }
};

}  // namespace thimble
