// TensorView: where a tensor lies, its type and its shape. Owns nothing; always dense, row-major.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/base/check.h"
#include "thimble/tensor/dtype.h"
#include "thimble/tensor/shape.h"

namespace thimble {

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  size_t size_bytes() const { return static_cast<size_t>(shape.elements()) * SizeBytes(dtype); }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data), size_bytes()}; }

  // The first element. T must be the stored type; aborts otherwise, for a wrong one would read and
  // write beside the tensor. For once per kernel, not once per element.
  template <class T>
  T* DataAs() const {
    THIMBLE_CHECK(dtype == DTypeOf<T>(), "a tensor of {} was taken for one of {}", Name(dtype),
                  Name(DTypeOf<T>()));
    return static_cast<T*>(data);
  }
  // All elements, likewise.
  template <class T>
  std::span<T> As() const {
    return {DataAs<T>(), static_cast<size_t>(shape.elements())};
  }
};

}  // namespace thimble
