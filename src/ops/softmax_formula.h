// Softmax and its gradient as formulas, for the references of several ops.
#pragma once

#include <cmath>
#include <cstdint>

#include "thimble/graph/reference.h"

namespace thimble {

// Index of the first maximum of row (count); requires count >= 1.
template <class T>
int64_t FirstMaximum(const T* row, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (RealPart(row[i]) > RealPart(row[best])) best = i;
  }
  return best;
}

// row (count) = softmax of row. The shift is treated as a constant in the derivative, because its
// effect cancels.
template <class T>
void ReplaceBySoftmax(T* row, int64_t count) {
  using std::exp;
  if (count == 0) return;
  const T largest = T(RealPart(row[FirstMaximum(row, count)]));
  T sum = T(0);
  for (int64_t i = 0; i < count; ++i) {
    row[i] = exp(row[i] - largest);
    sum += row[i];
  }
  for (int64_t i = 0; i < count; ++i) row[i] /= sum;
}

// Subtracts the mean of `numbers` (count), weighted with p (count), from each.
template <class T>
void SubtractMean(const T* p, T* numbers, int64_t count) {
  T mean = T(0);
  for (int64_t i = 0; i < count; ++i) mean += p[i] * numbers[i];
  for (int64_t i = 0; i < count; ++i) numbers[i] -= mean;
}

// gradient (count): on entry that of the probabilities p (count), on return that of what softmax
// was applied to: p_i * (g_i - sum_j p_j * g_j). The mean is subtracted twice: the second one is
// the rounding error of the first, which would be most of the result if one probability is nearly
// 1.
template <class T>
void ReplaceBySoftmaxGradient(const T* p, T* gradient, int64_t count) {
  SubtractMean(p, gradient, count);
  SubtractMean(p, gradient, count);
  for (int64_t i = 0; i < count; ++i) gradient[i] *= p[i];
}

}  // namespace thimble
