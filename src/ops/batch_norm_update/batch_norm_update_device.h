// The GPU code of batch_norm_update.
#pragma once

#include <cuda_runtime_api.h>

namespace thimble {

// One norm: next = kept * running + share * batch. mean and variance: (parts, channels); all other
// arrays: (channels); the next ones may be the running ones.
struct RunningNorm {
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  float* next_mean = nullptr;
  float* next_variance = nullptr;
  int channels = 0;
  float kept = 0;
  float mean_share = 0;
  float variance_share = 0;
  // How much of the batch a part is: the first `larger_parts`, and the others.
  int parts = 1;
  int larger_parts = 0;
  float larger_share = 1;
  float smaller_share = 1;
};

// As many as fit into the 4 KiB that every GPU takes as arguments.
inline constexpr int kMaxRunningNorms = 51;

struct RunningNorms {
  RunningNorm norms[kMaxRunningNorms];
};
static_assert(sizeof(RunningNorms) <= 4096);

// The first `count` of the norms.
void LaunchBatchNormUpdate(cudaStream_t stream, const RunningNorms& norms, int count);

}  // namespace thimble
