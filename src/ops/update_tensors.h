// The tensors that one launch of an update works on. The list is passed as a kernel argument, and
// blocks look up their tensor in it. GPU code includes this header.
#pragma once

#include <cstdint>

namespace thimble {

inline constexpr int kUpdateThreads = 256;
// Each thread works on four elements at once, several times: finding the tensor takes as long as
// the work on a few elements. A multiple of the blocks of q8.
inline constexpr int kUpdatePasses = 2;
inline constexpr int kUpdateBlockElements = kUpdatePasses * 4 * kUpdateThreads;

// Tensor has the members `elements` and `first_block`, the first block that works on it, which Add
// sets. Settings are those that all tensors share.
template <class Tensor, class Settings, int kMax_>
struct UpdateTensorList {
  static constexpr int kMax = kMax_;
  static constexpr bool kPacked = requires { Tensor::kPacked; };

  Tensor tensors[kMax];
  uint16_t streams[kMax];  // of random numbers
  Settings settings;
  int num_tensors = 0;
  int num_blocks = 0;

  // Requires space in the list. Ignores empty tensors.
  constexpr void Add(Tensor tensor, uint16_t stream = 0) {
    if (tensor.elements == 0) return;
    tensor.first_block = num_blocks;
    num_blocks += (tensor.elements - 1) / kUpdateBlockElements + 1;
    streams[num_tensors] = stream;
    tensors[num_tensors++] = tensor;
  }
  constexpr void Clear() { num_tensors = num_blocks = 0; }
  // The index of the tensor that a block below num_blocks works on.
  constexpr int Find(int block) const {
    int low = 0;
    int high = num_tensors;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (tensors[middle].first_block <= block) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

}  // namespace thimble
