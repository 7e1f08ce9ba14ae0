// Element types of stored tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace thimble {

enum class DType : uint8_t { kF32, kU8, kI32 };

constexpr size_t SizeBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kU8:
      return 1;
  }
  return 0;
}

constexpr std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kU8:
      return "u8";
    case DType::kI32:
      return "i32";
  }
  return "?";
}

// The DType for elements of type T, const or not.
template <class T>
constexpr DType DTypeOf() {
  using Element = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Element, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<Element, int32_t>) {
    return DType::kI32;
  } else {
    static_assert(std::is_same_v<Element, uint8_t>, "no tensor is stored as this type");
    return DType::kU8;
  }
}

}  // namespace thimble
