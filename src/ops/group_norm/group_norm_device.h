// The GPU code of the group-norm ops. x, y, dy, dx, other: (B, rows, C), at multiples of 16 bytes;
// gamma, beta, dgamma, dbeta: (C); mean, variance: (B, groups). Outputs may overwrite inputs where
// the ops allow it.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/ops/group_norm/group_blocks.h"

namespace thimble {

struct GroupNormArrays {
  const float* x;
  const float* gamma;
  const float* beta;
  float* y;
  float* mean;
  float* variance;
};

// A norm by statistics that are known.
struct KnownGroupNorm {
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  double epsilon;
  bool relu;
};

struct GroupNormGradArrays {
  const float* x;
  const float* dy;
  const float* other;  // null, or what is added to dx
  double* partials;    // scratch: blocks.num_partials()
  float* dx;
  float* dgamma;
  float* dbeta;
};

// One launch: each block measures its unit, then normalizes it.
void LaunchGroupNorm(cudaStream_t stream, const GroupBlocks& blocks, const GroupNormArrays& arrays,
                     double epsilon, bool relu);
// y from statistics that are known, in the bits of LaunchGroupNorm.
void LaunchGroupNormApply(cudaStream_t stream, const GroupBlocks& blocks,
                          const KnownGroupNorm& norm, const float* x, float* y);
// Two launches: each block sums up its unit, then combines; the sums of all samples.
void LaunchGroupNormGrad(cudaStream_t stream, const GroupBlocks& blocks, const KnownGroupNorm& norm,
                         const GroupNormGradArrays& arrays);

}  // namespace thimble
