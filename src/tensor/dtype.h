// Element types of stored tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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

}  // namespace thimble
