// The tensors that one launch of sgd_update works on. The list is passed as a kernel argument, and
// blocks look up their tensor in it.
#pragma once

namespace thimble {

// Settings shared by all tensors of a launch.
struct SgdSettings {
  const float* learning_rate =
      nullptr;  // on the device, so that a captured launch reads the current value
  float momentum = 0;
  float weight_decay = 0;
  bool nesterov = false;
  friend bool operator==(const SgdSettings&, const SgdSettings&) = default;
};

// All arrays: (elements). The next arrays may be the old ones; without momentum, two are null.
struct SgdTensor {
  const float* weight = nullptr;
  const float* gradient = nullptr;
  const float* momentum = nullptr;
  float* next_weight = nullptr;
  float* next_momentum = nullptr;
  int elements = 0;
  int first_block = 0;  // first block that works on it; set by Add
};

inline constexpr int kSgdThreads = 256;
// Each thread works on four elements at once.
inline constexpr int kSgdBlockElements = 4 * kSgdThreads;
// All 80 tensors of a wrn-28-2, within the 4 KiB of kernel arguments that every GPU supports.
inline constexpr int kMaxSgdTensors = 84;

struct SgdTensors {
  SgdTensor tensors[kMaxSgdTensors];
  SgdSettings settings;
  int num_tensors = 0;
  int num_blocks = 0;

  // Requires space in the list. Ignores empty tensors.
  constexpr void Add(SgdTensor tensor) {
    if (tensor.elements == 0) return;
    tensor.first_block = num_blocks;
    num_blocks += (tensor.elements - 1) / kSgdBlockElements + 1;
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

static_assert(sizeof(SgdTensors) <= 4096);

}  // namespace thimble
