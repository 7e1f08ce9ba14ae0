// TensorView: a tensor's address, type and shape. Owns nothing; always dense, row-major. GPU code
// includes this header, so it must not need fmt.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/tensor/dtype.h"
#include "thimble/tensor/shape.h"

namespace thimble {

// Names both types on standard error and aborts.
[[noreturn]] void FailForOtherType(DType stored, DType asked_for);

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  size_t size_bytes() const { return StorageBytes(dtype, static_cast<size_t>(shape.elements())); }
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

}  // namespace thimble
