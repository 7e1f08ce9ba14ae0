#include <cuda_runtime.h>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/merge_statistics/merge_statistics.h"

namespace thimble {
namespace {

// One norm. mean and variance: (groups, channels); all other arrays: (channels); the next ones may
// be the sums.
struct MergedNorm {
  const float* mean_sum = nullptr;
  const float* variance_sum = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  const int32_t* seen =
      nullptr;  // on the device, so that a captured launch reads the current value
  float* next_mean = nullptr;
  float* next_variance = nullptr;
  int channels = 0;
  int samples = 0;  // of the part being merged
  int groups = 1;   // in which it was normalised
};

// As many as fit into the 4 KiB of kernel arguments that every GPU supports.
constexpr int kMaxMergedNorms = 56;

struct MergedNorms {
  MergedNorm norms[kMaxMergedNorms];
};
static_assert(sizeof(MergedNorms) <= 4096);

MergedNorm MakeMergedNorm(const KernelCall& call) {
  MergedNorm norm;
  norm.mean_sum = call.In<float>(0);
  norm.variance_sum = call.In<float>(1);
  norm.mean = call.In<float>(2);
  norm.variance = call.In<float>(3);
  norm.seen = call.In<int32_t>(4);
  norm.next_mean = call.Out<float>(0);
  norm.next_variance = call.Out<float>(1);
  norm.channels = static_cast<int>(call.out_shape(0).elements());
  norm.samples = static_cast<int>(call.attributes.Int("samples"));
  const bool in_groups = call.in_shape(2) != call.out_shape(0);
  norm.groups = in_groups ? static_cast<int>(call.in_shape(2)[0]) : 1;
  return norm;
}

// The channels of most layers in one round.
constexpr int kMergeThreads = 128;

struct PartStatistics {
  float mean;
  float variance;
};

// The statistics of `before` samples merged with those of `samples` more.
__device__ PartStatistics Join(const PartStatistics& old, int64_t before,
                               const PartStatistics& more, int64_t samples) {
  const double all = static_cast<double>(before + samples);
  const auto kept = static_cast<float>(static_cast<double>(before) / all);
  const auto share = static_cast<float>(static_cast<double>(samples) / all);
  const float delta = more.mean - old.mean;
  const float within = fmaf(kept, old.variance, share * more.variance);
  return {fmaf(share, delta, old.mean), fmaf(kept * share * delta, delta, within)};
}

// One block for each norm.
__global__ void __launch_bounds__(kMergeThreads)
    MergeStatisticsKernel(const __grid_constant__ MergedNorms norms) {
  WaitForKernelsBefore();
  const MergedNorm norm = norms.norms[blockIdx.x];
  const NearlyEqualParts groups{norm.samples, norm.groups};
  const int seen = *norm.seen;
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += kMergeThreads) {
    PartStatistics sum = {norm.mean[c], norm.variance[c]};
    if (seen != 0) {
      sum = Join({norm.mean_sum[c], norm.variance_sum[c]}, seen, sum, groups.Size(0));
    }
    for (int group = 1; group < norm.groups; ++group) {
      const int64_t i = int64_t{group} * norm.channels + c;
      sum = Join(sum, seen + groups.Begin(group), {norm.mean[i], norm.variance[i]},
                 groups.Size(group));
    }
    norm.next_mean[c] = sum.mean;
    norm.next_variance[c] = sum.variance;
  }
}

}  // namespace

void MergeStatisticsCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

void MergeStatisticsCuda::RunGroup(std::span<const KernelCall> calls) {
  MergedNorms norms;
  int count = 0;
  for (const KernelCall& call : calls) {
    norms.norms[count++] = MakeMergedNorm(call);
    if (count < kMaxMergedNorms && &call != &calls.back()) continue;
    MergeStatisticsKernel<<<static_cast<unsigned>(count), kMergeThreads, 0, call.stream>>>(norms);
    THIMBLE_CUDA_LAUNCHED();
    count = 0;
  }
}

}  // namespace thimble
