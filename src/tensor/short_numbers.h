// Conversions of single numbers between f32 and 16 bits, rounding to the nearest, ties to even.
// Larger amounts: device/cpu/numbers.h.
#pragma once

#include <bit>
#include <cstdint>

#include "thimble/tensor/dtype.h"

namespace thimble {

inline float ToFloat(F16 number) {
  const uint32_t sign = (number.bits & 0x8000U) << 16;
  const uint32_t magnitude = number.bits & 0x7FFFU;
  // The exponent of a float is larger by 112; infinity and NaN have the largest of each.
  if (magnitude >= 0x7C00U) return std::bit_cast<float>(sign | (magnitude + 0x38000U) << 13);
  // Subnormal numbers are multiples of 2^-24.
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  if (magnitude < 0x400U) return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
  return std::bit_cast<float>(sign | (magnitude + 0x1C000U) << 13);
}

inline float ToFloat(BF16 number) {
  return std::bit_cast<float>(static_cast<uint32_t>(number.bits) << 16);
}

inline F16 ToF16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const uint32_t sign = bits >> 16 & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  const auto result = [sign](uint32_t half) { return F16{static_cast<uint16_t>(sign | half)}; };
  if (magnitude > 0x7F800000U) return result(0x7E00U | (magnitude >> 13 & 0x3FFU));  // NaN
  if (magnitude >= 0x477FF000U) return result(0x7C00U);  // from 65,520: infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 rounds to multiples of 2^-24
    return result(std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U);
  }
  return result((magnitude - 0x38000000U + 0xFFFU + (magnitude >> 13 & 1)) >> 13);
}

inline BF16 ToBF16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {  // NaN, which rounding could turn into infinity
    return {static_cast<uint16_t>(bits >> 16 | 0x40U)};
  }
  return {static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1)) >> 16)};
}

}  // namespace thimble
