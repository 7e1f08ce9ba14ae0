// The GPU code of the batch-norm ops. x, y, dy, dx, other: (rows, C), at multiples of 16 bytes;
// mean and variance: (parts, C); all other arrays: (C). Outputs may overwrite inputs where the ops
// allow it.
#pragma once

#include <cuda_runtime_api.h>

#include "thimble/ops/batch_norm/channel_blocks.h"

namespace thimble {

// A norm by statistics that are known.
struct KnownNorm {
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  double epsilon;
  bool relu;
};

struct BatchNormArrays {
  const float* x;
  const float* gamma;
  const float* beta;
  double* partials;  // scratch: blocks.num_partials()
  float* guess;      // scratch: (parts, C), what x is measured from
  float* y;
  float* mean;
  float* variance;
};

struct BatchNormGradArrays {
  const float* x;
  const float* dy;
  const float* other;  // null, or what is added to dx
  double* partials;    // scratch: blocks.num_partials()
  float* dx;
  float* dgamma;
  float* dbeta;
};

// Two launches: statistics of the chunks; merging them and normalizing.
void LaunchBatchNorm(cudaStream_t stream, const ChannelBlocks& blocks,
                     const BatchNormArrays& arrays, double epsilon, bool relu);
// y from statistics that are known, in the bits of LaunchBatchNorm.
void LaunchNormalize(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
                     const float* x, float* y);
// Two launches: sums of the chunks; merging them and combining.
void LaunchBatchNormGrad(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
                         const BatchNormGradArrays& arrays);
// The same where the statistics are constants, without `other`.
void LaunchBatchNormEvalGrad(cudaStream_t stream, const ChannelBlocks& blocks,
                             const KnownNorm& norm, const BatchNormGradArrays& arrays);

}  // namespace thimble
