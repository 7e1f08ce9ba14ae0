// Conversions of single numbers between f32 and fewer bits. Larger amounts: device/cpu/numbers.h.
// GPU code includes this header.
#pragma once

#include <bit>
#include <cstdint>

#include "thimble/tensor/dtype.h"

namespace thimble {

inline constexpr float kLargestF16 = 65504;  // larger numbers are stored as infinity

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

// Rounds to the nearest, ties to even.
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

// Rounds to the nearest, ties to even.
inline BF16 ToBF16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {  // NaN, which rounding could turn into infinity
    return {static_cast<uint16_t>(bits >> 16 | 0x40U)};
  }
  return {static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1)) >> 16)};
}

// Stochastic rounding: one of the two neighbours that 16 bits can store, the nearer one with the
// larger probability, so that the expected value is `number`. `random` has 16 random bits. Numbers
// beyond the largest one stay as they are.
constexpr float RoundToF16AtRandom(float number, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const float size = __builtin_fabsf(number);
  // Below 2^-14 all numbers are multiples of 2^-24, as they are between 2^-14 and 2^-13.
  const float shift = size < 0x1p-14F ? 0x1p-14F : 0.0F;
  const uint32_t cut = (std::bit_cast<uint32_t>(size + shift) + (random & 0x1FFFU)) & ~0x1FFFU;
  const uint32_t rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(cut) - shift);
  const bool is_finite = size < kLargestF16;  // false for NaN, too
  return std::bit_cast<float>(is_finite ? (bits & 0x80000000U) | rounded : bits);
}

constexpr float RoundToBF16AtRandom(float number, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const bool stays = (bits & 0x7FFFFFFFU) >= 0x7F7F0000U;
  return std::bit_cast<float>(stays ? bits : (bits + (random & 0xFFFFU)) & 0xFFFF0000U);
}

// q8: number = scale * integer, where the largest magnitude of a block is 127 times its scale. A
// block with a number that is not finite has a scale that is not finite, and so are its numbers.
constexpr float Q8Scale(float largest_magnitude) { return largest_magnitude * (1.0F / 127.0F); }
// The inverse of a scale; 0 for blocks of zeros, and where it would not be finite.
constexpr float Q8Inverse(float scale) { return scale >= 0x1p-126F ? 1.0F / scale : 0.0F; }

}  // namespace thimble
