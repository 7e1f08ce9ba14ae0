// TensorView: a tensor's address, type and shape. Owns nothing; row-major, dense or packed
// (packed.h). GPU code includes this header, so it must not need fmt.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/tensor/dtype.h"
#include "thimble/tensor/packed.h"
#include "thimble/tensor/shape.h"

namespace thimble {

// Names both types on standard error and aborts.
[[noreturn]] void FailForOtherType(DType stored, DType asked_for);

struct InputNorm;

struct TensorView {
  void* data = nullptr;  // of a packed tensor: the beginning of its pool
  DType dtype = DType::kF32;
  Shape shape;              // of a packed tensor: with all elements, active or not
  PackedPlace packed = {};  // where the tensor is in its pool, if it is packed
  // What the numbers are normalised by when they are read (ops/conv2d/line_packer.h), or null. Only
  // views that an op makes for another op's kernel have it.
  const InputNorm* norm = nullptr;

  bool is_packed() const { return packed.is_packed(); }
  // 0 for packed tensors: how many bytes of the pool they have changes with the pattern.
  size_t size_bytes() const {
    return is_packed() ? 0 : StorageBytes(dtype, static_cast<size_t>(shape.elements()));
  }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data), size_bytes()}; }

  // The first element. T must be the stored type; aborts otherwise, because a wrong type would
  // access memory outside the tensor. Meant to be called once per kernel, not once per element.
  template <class T>
  T* DataAs() const {
    if (dtype != DTypeOf<T>()) FailForOtherType(dtype, DTypeOf<T>());
    return static_cast<T*>(data);
  }
  // All elements, with the same check.
  template <class T>
  std::span<T> As() const {
    return {DataAs<T>(), static_cast<size_t>(shape.elements())};
  }
};

// The numbers that are stored: the tensor itself, or the active numbers of a packed one as a dense
// list. Reads the pattern, so only for tensors in host memory.
inline TensorView StoredNumbers(const TensorView& view) {
  if (!view.is_packed()) return view;
  return {static_cast<std::byte*>(view.data) + view.packed.OffsetBytes(view.dtype), view.dtype,
          Shape{static_cast<int64_t>(view.packed.count())}};
}

}  // namespace thimble
