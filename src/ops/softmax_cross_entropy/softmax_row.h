// The passes over one row of logits that losses are made of, in vectors.
#pragma once

#include <cstddef>

namespace thimble {

// The values that determine a row's loss and gradient. The maximum's own exponential is 1 and is
// kept separate, so that small terms are not lost in the sum: a confident row has a tiny loss and
// gradient.
struct RowSoftmax {
  // `row` has at least one class.
  RowSoftmax(const float* row, size_t classes);

  size_t best;    // index of the first maximum; 0 if the first logit is NaN
  float largest;  // the maximum
  double others;  // sum of exp(logit - largest) without the maximum's own; NaN if that is infinite
};

// The largest number that is not NaN.
float LargestOfRow(const float* row, size_t count);

// The index of the first number above `limit`; `count` if there is none.
size_t FirstAbove(const float* row, size_t count, float limit);

// Sums: each lane sums in floats, the lanes are added in doubles.
double SumOfRow(const float* row, size_t count);
// Of exp(number - shift).
double SumOfExponentials(const float* row, size_t count, float shift);

// out = exp(row - shift) * factor; out may be row. NaN stays NaN.
void ScaledExponentials(const float* row, size_t count, float shift, float factor, float* out);

}  // namespace thimble
