// softmax_cross_entropy and softmax_cross_entropy_grad as formulas.
#pragma once

#include <cmath>
#include <limits>

#include "thimble/graph/reference.h"

namespace thimble {

// Index of the first maximum of row (N); rows are not empty where this is called.
template <class T>
int64_t FirstMaximum(const T* row, int64_t classes) {
  int64_t best = 0;
  for (int64_t n = 1; n < classes; ++n) {
    if (RealPart(row[n]) > RealPart(row[best])) best = n;
  }
  return best;
}

// Sum of exp(row - largest) over the row (N). The shift is a constant to the derivative, as its
// influence cancels.
template <class T>
T SumOfExponentials(const T* row, int64_t classes, double largest) {
  using std::exp;
  T sum = T(0);
  for (int64_t n = 0; n < classes; ++n) sum += exp(row[n] - T(largest));
  return sum;
}

struct SoftmaxCrossEntropyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::log;
    const int64_t classes = call.in_shape(0)[1];
    T loss = T(0);
    int32_t correct = 0;
    for (int64_t b = 0; b < call.in_shape(0)[0]; ++b) {
      const T* row = call.In(0) + b * classes;
      const int32_t label = call.template InAs<int32_t>(1)[b];
      if (label < 0 || label >= classes) {
        loss += T(std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const int64_t best = FirstMaximum(row, classes);
      const double largest = RealPart(row[best]);
      loss += log(SumOfExponentials(row, classes, largest)) - (row[label] - T(largest));
      correct += best == label ? 1 : 0;
    }
    call.Out(0)[0] = loss / T(call.op.attributes.Float("divisor"));
    call.template OutAs<int32_t>(1)[0] = correct;
  }
};

struct SoftmaxCrossEntropyGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::exp;
    const int64_t classes = call.in_shape(0)[1];
    const T factor = call.In(2)[0] / T(call.op.attributes.Float("divisor"));
    for (int64_t b = 0; b < call.in_shape(0)[0]; ++b) {
      const T* row = call.In(0) + b * classes;
      T* out = call.Out(0) + b * classes;
      const int32_t label = call.template InAs<int32_t>(1)[b];
      const bool in_range = label >= 0 && label < classes;
      const double largest = classes > 0 ? RealPart(row[FirstMaximum(row, classes)]) : 0;
      const T sum = SumOfExponentials(row, classes, largest);
      for (int64_t n = 0; n < classes; ++n) {
        const T probability = exp(row[n] - T(largest)) / sum;
        out[n] = in_range ? (probability - T(n == label ? 1 : 0)) * factor
                          : T(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
};

}  // namespace thimble
