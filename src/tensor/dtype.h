// Element types of stored tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace thimble {

enum class DType : uint8_t {
  kF32,
  kU8,
  kI32,
  kF16,   // IEEE: 5 bits of exponent, 10 of mantissa; largest 65,504
  kBF16,  // the upper half of an f32: 8 bits of exponent, 7 of mantissa
  kQ8,    // blocks of 256 integers of 8 bits, each after its scale, an f32 (short_numbers.h)
};

// Numbers in 16 bits, as stored. Arithmetic is done in f32 (device/cpu/numbers.h).
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

// Types that store numbers with a fraction, which computations read as f32.
constexpr bool IsNumber(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}
constexpr bool IsShortNumber(DType dtype) { return IsNumber(dtype) && dtype != DType::kF32; }

// Of kQ8. The last block of a tensor may be shorter; its integers are padded to a multiple of 4.
inline constexpr size_t kQ8BlockNumbers = 256;
inline constexpr size_t kQ8BlockBytes = sizeof(float) + kQ8BlockNumbers;

// Bytes of one element. Not for kQ8, where only whole blocks have a size.
constexpr size_t SizeBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU8:
      return 1;
    case DType::kQ8:
      break;
  }
  return 0;
}

// Bytes of this many elements.
constexpr size_t StorageBytes(DType dtype, size_t elements) {
  if (dtype != DType::kQ8) return elements * SizeBytes(dtype);
  const size_t rest = elements % kQ8BlockNumbers;
  const size_t rest_bytes = rest == 0 ? 0 : sizeof(float) + (rest + 3) / 4 * 4;
  return elements / kQ8BlockNumbers * kQ8BlockBytes + rest_bytes;
}

constexpr std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kU8:
      return "u8";
    case DType::kI32:
      return "i32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kQ8:
      return "q8";
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
  } else if constexpr (std::is_same_v<Element, F16>) {
    return DType::kF16;
  } else if constexpr (std::is_same_v<Element, BF16>) {
    return DType::kBF16;
  } else {
    static_assert(std::is_same_v<Element, uint8_t>, "no tensor is stored as this type");
    return DType::kU8;
  }
}

}  // namespace thimble
