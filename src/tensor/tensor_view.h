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

  // The elements as T, which must have the size of the stored type.
  template <class T>
  std::span<T> As() const {
    THIMBLE_DCHECK(sizeof(T) == SizeBytes(dtype), "{} bytes asked of {}", sizeof(T), Name(dtype));
    return {static_cast<T*>(data), static_cast<size_t>(shape.elements())};
  }
};

}  // namespace thimble
