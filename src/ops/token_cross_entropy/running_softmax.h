// The softmax of the logits of one token, which come slice by slice of the vocabulary.
#pragma once

#include <cmath>
#include <cstdint>

#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/ops/softmax_cross_entropy/softmax_row.h"

namespace thimble {

// Over the slices so far. The first slice begins a new one, whatever was here before.
struct RunningSoftmax {
  double others;  // as in RowSoftmax
  float largest;
  int32_t best;

  void AddSlice(const float* row, IndexRange slice) {
    if (slice.begin > 0 && !(LargestOfRow(row, slice.size()) > largest)) {
      others += SumOfExponentials(row, slice.size(), largest);
    } else {
      AddLargerSlice(RowSoftmax(row, slice.size()), slice.begin);
    }
  }

  // The log of the sum of all exponentials, relative to the largest logit.
  double LogSum() const { return std::log1p(others); }

 private:
  // The first slice, or one with a larger logit than all before.
  void AddLargerSlice(const RowSoftmax& slice, size_t first_word) {
    if (first_word == 0) {
      others = slice.others;
    } else {
      const double factor = std::exp(static_cast<double>(largest) - slice.largest);
      others = slice.others + (others + 1) * factor;
    }
    largest = slice.largest;
    best = static_cast<int32_t>(first_word + slice.best);
  }
};

}  // namespace thimble
