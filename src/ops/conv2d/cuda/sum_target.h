// What becomes of the finished sums of a weight gradient: they are stored, or the op that needs
// them uses each of them at once. Passed to the GPU by value.
#pragma once

#include <cstdint>

#include "thimble/ops/sgd_update/sgd_ports.h"
#include "thimble/ops/sgd_update/sgd_tensors.h"
#include "thimble/tensor/number_pointer.h"
#include "thimble/tensor/packed.h"

namespace thimble {

// Who uses a sum at once.
enum class SumUser { kNone, kAccumulate, kSgd };

struct GradientUse {
  SumUser user = SumUser::kNone;
  SgdOp op = SgdOp::kUpdate;  // of kSgd
  // Of accumulate: `seen`, and sum and next as types and arrays of weights. `gradient_type` is the
  // type in which the gradient would be stored between the two ops.
  SgdSettings settings = {};
  SgdTensor tensor = {};  // packed arrays: from the beginning of their pools
  uint32_t stream = 0;    // of random words
};

// Elements are counted as in a dense dw.
struct SumTarget {
  Numbers numbers;            // unless they are used at once
  PackedPlace packed = {};    // only active elements are stored or used
  int64_t first_element = 0;  // the first of `numbers`, unless they are packed
  // If it is not 0: `numbers` has this many, and those of the tensor that are stored follow each
  // other there, active number i at i % ring.
  int ring = 0;
  bool limits_f16 = false;  // finite sums become finite numbers of f16
  GradientUse use = {};

  constexpr bool is_dense_array() const {
    return !packed.is_packed() && ring == 0 && use.user == SumUser::kNone;
  }
};

}  // namespace thimble
