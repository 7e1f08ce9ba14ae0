// The tensors that one launch of accumulate works on. The list travels as an argument of the
// kernel, and blocks find their tensor in it.
#pragma once

#include <cstdint>

namespace thimble {

// Arrays: (elements). `next` may be `sum`.
struct AccumulateTensor {
  const float* sum = nullptr;
  const float* x = nullptr;
  float* next = nullptr;
  int elements = 0;
  int first_block = 0;  // of those that work on it; Add sets it
};

inline constexpr int kAccumulateThreads = 256;
// Each thread works on four elements at once.
inline constexpr int kAccumulateBlockElements = 4 * kAccumulateThreads;
// Few follow each other in a backward pass.
inline constexpr int kMaxAccumulateTensors = 16;

struct AccumulateTensors {
  AccumulateTensor tensors[kMaxAccumulateTensors];
  const int32_t* seen = nullptr;  // on the device, so that a captured launch follows it
  int num_tensors = 0;
  int num_blocks = 0;

  constexpr bool full() const { return num_tensors == kMaxAccumulateTensors; }
  // There must be room. Empty tensors are left out.
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
