// The address of numbers of any storage type. GPU code includes this header.
#pragma once

#include <cstddef>
#include <type_traits>

#include "thimble/tensor/tensor_view.h"

namespace thimble {

// A pointer to floats is one.
template <class Void>
struct NumberPointer {
  static constexpr bool kConst = std::is_const_v<Void>;
  using Float = std::conditional_t<kConst, const float, float>;
  using Byte = std::conditional_t<kConst, const std::byte, std::byte>;

  NumberPointer() = default;
  constexpr NumberPointer(Float* floats) : data(floats) {}  // NOLINT(google-explicit-constructor)
  constexpr NumberPointer(Void* address, DType stored_type) : data(address), type(stored_type) {}

  // Of q8: whole blocks.
  constexpr NumberPointer operator+(size_t elements) const {
    return {static_cast<Byte*>(data) + StorageBytes(type, elements), type};
  }
  constexpr bool is_float() const { return type == DType::kF32; }
  // Requires is_float().
  constexpr Float* floats() const { return static_cast<Float*>(data); }

  Void* data = nullptr;
  DType type = DType::kF32;
};
using Numbers = NumberPointer<void>;
using ConstNumbers = NumberPointer<const void>;
inline Numbers NumbersOf(const TensorView& view) { return {view.data, view.dtype}; }
inline ConstNumbers ConstNumbersOf(const TensorView& view) { return {view.data, view.dtype}; }

}  // namespace thimble
