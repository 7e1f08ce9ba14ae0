// Weight gradients that are never stored as a whole: ranges of them are finished in scratch, one
// after the other, and used at once. Their sums have the bits that conv2d_grad_weight stores in
// f32.
#pragma once

#include <cstddef>

#include "thimble/base/function_ref.h"
#include "thimble/graph/kernel.h"

namespace thimble {

// Gets elements [first, first + count) of dw. Ranges come in increasing order and cover all of dw;
// no job runs meanwhile, so threads can be used. `values` may be changed, as may kRangeMargin
// floats before them, which stay as they are between two calls (grad_weight_blocks.h).
using GradWeightSink = FunctionRef<void(size_t first, size_t count, float* values)>;

// `call` has the inputs x and dy, which others may follow, and the attributes of
// conv2d_grad_weight.
size_t GradWeightRangesScratchBytes(const OpCall& call, const KernelLimits& limits);
void RunGradWeightRanges(const KernelCall& call, GradWeightSink sink);

}  // namespace thimble
