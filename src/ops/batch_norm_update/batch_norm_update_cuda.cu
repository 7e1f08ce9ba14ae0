#include <cuda_runtime.h>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/batch_norm_update/batch_norm_update.h"

namespace thimble {
namespace {

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
  // Fraction of the batch in a part: in each of the first `larger_parts`, and in the others.
  int parts = 1;
  int larger_parts = 0;
  float larger_share = 1;
  float smaller_share = 1;
};

// As many as fit into the 4 KiB of kernel arguments that every GPU supports.
constexpr int kMaxRunningNorms = 51;

struct RunningNorms {
  RunningNorm norms[kMaxRunningNorms];
  const float* factor = nullptr;  // null: no update is skipped
};
static_assert(sizeof(RunningNorms) <= 4096);

void SetParts(const KernelCall& call, RunningNorm& norm) {
  const NearlyEqualParts parts{call.attributes.Int("samples"), call.in_shape(2)[0]};
  norm.parts = static_cast<int>(parts.parts);
  norm.larger_parts = static_cast<int>(parts.total % parts.parts);
  norm.larger_share = static_cast<float>(parts.Share(0));
  norm.smaller_share = static_cast<float>(parts.Share(parts.parts - 1));
}

RunningNorm MakeRunningNorm(const KernelCall& call) {
  const double momentum = call.attributes.Float("momentum");
  const auto count = static_cast<double>(call.attributes.Int("count"));
  const double unbias = count > 1 ? count / (count - 1) : 1;
  RunningNorm norm;
  norm.running_mean = call.In<float>(0);
  norm.running_variance = call.In<float>(1);
  norm.mean = call.In<float>(2);
  norm.variance = call.In<float>(3);
  norm.next_mean = call.Out<float>(0);
  norm.next_variance = call.Out<float>(1);
  norm.channels = static_cast<int>(call.out_shape(0).elements());
  norm.kept = static_cast<float>(1 - momentum);
  norm.mean_share = static_cast<float>(momentum);
  norm.variance_share = static_cast<float>(momentum * unbias);
  if (call.in_shape(2).rank() == 2) SetParts(call, norm);
  return norm;
}

const float* FactorOf(const KernelCall& call) {
  return call.inputs.size() > kFactorInput ? call.In<float>(kFactorInput) : nullptr;
}

// The channels of most layers in one round.
constexpr int kRunningThreads = 128;

struct BatchStatistics {
  float mean;
  float variance;
};

// The average of of_part(index of the statistic) over the parts, weighted by their shares.
template <class OfPart>
__device__ float Average(const RunningNorm& norm, int channel, const OfPart& of_part) {
  float sum = 0;
#pragma unroll 8
  for (int part = 0; part < norm.parts; ++part) {
    const float share = part < norm.larger_parts ? norm.larger_share : norm.smaller_share;
    sum = fmaf(share, of_part(int64_t{part} * norm.channels + channel), sum);
  }
  return sum;
}

// Mean of the parts' means; mean of their variances plus variance of their means.
__device__ BatchStatistics StatisticsOfBatch(const RunningNorm& norm, int channel) {
  if (norm.parts == 1) return {norm.mean[channel], norm.variance[channel]};
  const float mean = Average(norm, channel, [&](int64_t i) { return norm.mean[i]; });
  return {mean, Average(norm, channel, [&](int64_t i) {
            const float distance = norm.mean[i] - mean;
            return fmaf(distance, distance, norm.variance[i]);
          })};
}

// One block for each norm.
__global__ void __launch_bounds__(kRunningThreads)
    BatchNormUpdateKernel(const __grid_constant__ RunningNorms norms) {
  WaitForKernelsBefore();
  const RunningNorm norm = norms.norms[blockIdx.x];
  const bool skipped = norms.factor != nullptr && *norms.factor == 0;
  for (int c = static_cast<int>(threadIdx.x); c < norm.channels; c += kRunningThreads) {
    if (skipped) {
      norm.next_mean[c] = norm.running_mean[c];
      norm.next_variance[c] = norm.running_variance[c];
      continue;
    }
    const BatchStatistics batch = StatisticsOfBatch(norm, c);
    const float mean = norm.mean_share * batch.mean;
    const float variance = norm.variance_share * batch.variance;
    norm.next_mean[c] = fmaf(norm.kept, norm.running_mean[c], mean);
    norm.next_variance[c] = fmaf(norm.kept, norm.running_variance[c], variance);
  }
}

}  // namespace

void BatchNormUpdateCuda::Run(const KernelCall& call) { RunGroup({&call, 1}); }

void BatchNormUpdateCuda::RunGroup(std::span<const KernelCall> calls) {
  RunningNorms norms;
  int count = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const KernelCall& call = calls[i];
    norms.norms[count++] = MakeRunningNorm(call);
    norms.factor = FactorOf(call);
    const bool last = i + 1 == calls.size() || FactorOf(calls[i + 1]) != norms.factor;
    if (count < kMaxRunningNorms && !last) continue;
    BatchNormUpdateKernel<<<static_cast<unsigned>(count), kRunningThreads, 0, call.stream>>>(norms);
    THIMBLE_CUDA_LAUNCHED();
    count = 0;
  }
}

}  // namespace thimble
