// The GPU code of merge_statistics.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

// One norm. mean and variance: (groups, channels); all other arrays: (channels); the next ones may
// be the sums.
struct MergedNorm {
  const float* mean_sum = nullptr;
  const float* variance_sum = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  const int32_t* seen = nullptr;  // on the device, so that a captured launch follows it
  float* next_mean = nullptr;
  float* next_variance = nullptr;
  int channels = 0;
  int samples = 0;  // of the part that joins
  int groups = 1;   // that it was normalised in
};

// As many as fit into the 4 KiB that every GPU takes as arguments.
inline constexpr int kMaxMergedNorms = 56;

struct MergedNorms {
  MergedNorm norms[kMaxMergedNorms];
};
static_assert(sizeof(MergedNorms) <= 4096);

// The first `count` of the norms.
void LaunchMergeStatistics(cudaStream_t stream, const MergedNorms& norms, int count);

}  // namespace thimble
