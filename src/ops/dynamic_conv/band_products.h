// Products with a band matrix: a row for each position of a sentence, with one number for each of
// the K positions around it. The band is stored as its rows (positions, K); the square matrix never
// exists. Compiled per SIMD target.
#pragma once

#include <cstddef>

namespace thimble {

// out row o = sum over the positions s in [o - before, o + after], as far as they exist, of
//   band[o * out_step + s * in_step] * in row s,
// as one chain of multiply-adds over s, in order. So the bits of a row depend neither on other rows
// nor on how many there are.
struct BandSum {
  const float* in = nullptr;  // (positions, channels)
  float* out = nullptr;       // (positions, channels), rows out_stride floats apart
  size_t out_stride = 0;
  size_t positions = 0;
  size_t channels = 0;
  ptrdiff_t before = 0;
  ptrdiff_t after = 0;
  const float* band = nullptr;
  ptrdiff_t out_step = 0;
  ptrdiff_t in_step = 0;
};
void SumBand(const BandSum& sum);

// products row t, tap k = the sum over the channels of a row t times b row t + k - before: lanes in
// order, then over the lanes. Zero if there is no such row.
struct BandDots {
  const float* a = nullptr;  // (positions, channels)
  const float* b = nullptr;  // (positions, channels)
  size_t positions = 0;
  size_t channels = 0;
  ptrdiff_t before = 0;
  size_t taps = 0;
  float* products = nullptr;  // (positions, taps), rows `stride` floats apart
  size_t stride = 0;
};
void MultiplyBand(const BandDots& dots);

}  // namespace thimble
