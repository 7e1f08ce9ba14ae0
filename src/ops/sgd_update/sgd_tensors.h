// The tensors that one launch of a kernel of sgd_update works on.
#pragma once

#include <array>
#include <cstdint>

#include "thimble/ops/update_tensors.h"
#include "thimble/tensor/dtype.h"

namespace thimble {

// Settings shared by all tensors of a launch. Pointers are on the device, so that a captured launch
// reads the current values; null if the op has no such input.
struct SgdSettings {
  const float* learning_rate = nullptr;
  const int32_t* seen = nullptr;
  const int32_t* update = nullptr;
  const float* factor = nullptr;
  std::array<uint32_t, 2> key = {};  // of stochastic rounding
  uint32_t streams_from = 0;         // added to the stream of each tensor
  uint32_t first_draw = 0;           // of the first element of the tensors
  float momentum = 0;
  float weight_decay = 0;
  float feedback_rate = 0;  // 0: no error feedback
  DType weight_type = DType::kF32;
  DType gradient_type = DType::kF32;
  DType momentum_type = DType::kF32;
  DType next_weight_type = DType::kF32;
  DType next_momentum_type = DType::kF32;
  bool nesterov = false;
  bool stochastic = false;
  friend bool operator==(const SgdSettings&, const SgdSettings&) = default;
};

// All arrays: (elements). The next arrays may be the old ones; those that an op does not have are
// null.
struct SgdTensor {
  const void* weight = nullptr;
  const void* gradient = nullptr;
  const void* momentum = nullptr;
  void* next_weight = nullptr;
  void* next_momentum = nullptr;
  int elements = 0;
  int first_block = 0;  // first block that works on it; set by Add
};

// Arrays whose active elements are stored (tensor/packed.h): `elements` counts all, active or not,
// and the arrays are advanced by as many as if they were dense from the beginning of their pools
// on.
struct PackedSgdTensor : SgdTensor {
  static constexpr bool kPacked = true;

  const uint32_t* starts = nullptr;  // on the device: of the tensor's blocks
  int blocks = 0;
  int index = 0;  // among the tensors of the pools
};

// All 80 tensors of a wrn-28-2, within the 4 KiB of kernel arguments that every GPU supports.
inline constexpr int kMaxSgdTensors = 80;
// All its convolutions, likewise.
inline constexpr int kMaxPackedSgdTensors = 60;

template <class Tensor, int kMax>
using SgdTensorList = UpdateTensorList<Tensor, SgdSettings, kMax>;
using SgdTensors = SgdTensorList<SgdTensor, kMaxSgdTensors>;
using PackedSgdTensors = SgdTensorList<PackedSgdTensor, kMaxPackedSgdTensors>;
static_assert(sizeof(SgdTensors) <= 4096 && sizeof(PackedSgdTensors) <= 4096);

}  // namespace thimble
