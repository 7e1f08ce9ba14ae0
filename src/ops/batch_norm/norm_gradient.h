// The gradient of a batch norm from a dy that exists piece by piece, if it must: the CPU kernels of
// batch_norm_grad have all of it, norm_conv2d_grad_input computes some rows at a time.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/base/function_ref.h"
#include "thimble/ops/batch_norm/channel_passes.h"

namespace thimble {

struct NormGradient {
  const ChannelRows& rows;
  ConstNumbers x;
  const float* gamma;     // (C)
  const float* beta;      // (C)
  const float* mean;      // (parts, C)
  const float* variance;  // (parts, C)
  double epsilon;
  bool relu;
  ConstNumbers other;  // added to dx, or null
  Numbers dx;          // may be x or other
  float* dgamma;       // (C)
  float* dbeta;        // (C)
};

size_t NormGradientScratchBytes(const ChannelRows& rows);

// Calls for_each(visit) twice, which calls visit with pieces that together are all chunks. The
// second time, dx replaces the rows of a piece when it is visited.
void RunNormGradient(const NormGradient& gradient, std::span<std::byte> scratch, ThreadPool& pool,
                     FunctionRef<void(FunctionRef<void(const GradientChunks&)>)> for_each);

}  // namespace thimble
