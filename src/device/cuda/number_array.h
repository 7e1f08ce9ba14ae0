// Numbers in GPU memory whose storage type is known only when the kernel runs; passed to kernels by
// value.
#pragma once

#include "thimble/tensor/tensor_view.h"

namespace thimble {

struct ConstNumberArray {
  const void* data = nullptr;
  DType type = DType::kF32;
};

struct NumberArray {
  void* data = nullptr;
  DType type = DType::kF32;
};

inline ConstNumberArray ConstNumberArrayOf(const TensorView& view) {
  return {view.data, view.dtype};
}
inline NumberArray NumberArrayOf(const TensorView& view) { return {view.data, view.dtype}; }

}  // namespace thimble
