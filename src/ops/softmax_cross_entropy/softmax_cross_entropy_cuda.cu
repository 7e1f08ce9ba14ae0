#include <cuda_runtime.h>
#include <math_constants.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy.h"

namespace thimble {
namespace {

struct ClassifiedRows {
  const float* logits;    // (rows, classes)
  const int32_t* labels;  // (rows)
  int64_t rows, classes;
  double divisor;
};

ClassifiedRows ClassifiedRowsOf(const KernelCall& call) {
  const Shape& logits = call.in_shape(0);  // (B, N)
  return {call.In<float>(0), call.In<int32_t>(1), logits[0], logits[1],
          call.attributes.Float("divisor")};
}

constexpr int kRowLanes = kWarpLanes;  // a warp works on a row
constexpr unsigned kAllLanes = 0xFFFFFFFF;

// The values that determine a row's loss and gradient, the same in all lanes. The maximum's own
// exponential is 1 and is kept separate, so that small terms are not lost in the sum.
struct RowSoftmax {
  int64_t best;   // index of the first maximum; 0 if the first logit is NaN
  float largest;  // the maximum
  double others;  // sum of exp(logit - largest) without the maximum's own
};

// `row` has at least one class. All lanes of a warp call this together.
__device__ RowSoftmax SoftmaxOfRow(const float* row, int64_t classes, int lane) {
  RowSoftmax result{0, row[0], 0};
  for (int64_t n = lane; n < classes; n += kRowLanes) {
    if (row[n] > result.largest) {
      result.largest = row[n];
      result.best = n;
    }
  }
  for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, result.largest, distance);
    const int64_t other_best = __shfl_xor_sync(kAllLanes, result.best, distance);
    if (other > result.largest || (other == result.largest && other_best < result.best)) {
      result.largest = other;
      result.best = other_best;
    }
  }
  double sum = 0;
  for (int64_t n = lane; n < classes; n += kRowLanes) {
    if (n != result.best) sum += expf(row[n] - result.largest);
  }
  // An infinite maximum makes the row NaN, as it does in the formula.
  result.others = WarpSum(sum) + static_cast<double>(result.largest - result.largest);
  return result;
}

__device__ bool InRange(int32_t label, int64_t classes) { return label >= 0 && label < classes; }

// One block: warp w takes rows w, w + kLossWarps, ..., then the warps' sums are added up as a tree.
constexpr int kLossWarps = 32;
static_assert(kLossWarps == kRowLanes, "one warp adds up the sums of all warps");

__global__ void __launch_bounds__(kRowLanes* kLossWarps)
    SoftmaxCrossEntropyKernel(ClassifiedRows in, float* loss, int32_t* correct) {
  __shared__ double warp_loss[kLossWarps];
  __shared__ int warp_correct[kLossWarps];
  const int lane = threadIdx.x;
  const int warp = threadIdx.y;
  double loss_sum = 0;
  int correct_sum = 0;
  WaitForKernelsBefore();
  for (int64_t b = warp; b < in.rows; b += kLossWarps) {
    const int32_t label = in.labels[b];
    if (!InRange(label, in.classes)) {
      loss_sum += CUDART_NAN;
      continue;
    }
    const float* row = in.logits + b * in.classes;
    const RowSoftmax softmax = SoftmaxOfRow(row, in.classes, lane);
    loss_sum += log1p(softmax.others) -
                (static_cast<double>(row[label]) - static_cast<double>(softmax.largest));
    correct_sum += softmax.best == label ? 1 : 0;
  }
  if (lane == 0) {
    warp_loss[warp] = loss_sum;
    warp_correct[warp] = correct_sum;
  }
  __syncthreads();
  if (warp != 0) return;
  loss_sum = WarpSum(warp_loss[lane]);
  correct_sum = WarpSum(warp_correct[lane]);
  if (lane != 0) return;
  loss[0] = static_cast<float>(loss_sum / in.divisor);
  correct[0] = correct_sum;
}

constexpr int kGradWarps = 4;
constexpr int64_t kMaxGradBlocks = 1 << 16;  // blocks loop over the remaining rows

// A lane overwrites only elements that no other lane still reads, so that dlogits may be logits.
__global__ void __launch_bounds__(kRowLanes* kGradWarps)
    SoftmaxCrossEntropyGradKernel(ClassifiedRows in, const float* dloss, float* dlogits) {
  WaitForKernelsBefore();
  const int lane = threadIdx.x;
  const double factor = static_cast<double>(dloss[0]) / in.divisor;
  const int64_t step = int64_t{gridDim.x} * kGradWarps;
  for (int64_t b = int64_t{blockIdx.x} * kGradWarps + threadIdx.y; b < in.rows; b += step) {
    const float* row = in.logits + b * in.classes;
    float* out = dlogits + b * in.classes;
    const int32_t label = in.labels[b];
    if (!InRange(label, in.classes)) {
      for (int64_t n = lane; n < in.classes; n += kRowLanes) out[n] = CUDART_NAN_F;
      continue;
    }
    const RowSoftmax softmax = SoftmaxOfRow(row, in.classes, lane);
    const double scale = factor / (1 + softmax.others);
    for (int64_t n = lane; n < in.classes; n += kRowLanes) {
      float gradient = expf(row[n] - softmax.largest) * static_cast<float>(scale);
      if (n == label) gradient -= static_cast<float>(factor);
      // The label's probability minus 1, without cancellation.
      if (n == label && n == softmax.best) gradient = static_cast<float>(-scale * softmax.others);
      out[n] = gradient;
    }
  }
}

}  // namespace

void SoftmaxCrossEntropyCuda::Run(const KernelCall& call) {
  SoftmaxCrossEntropyKernel<<<1, dim3(kRowLanes, kLossWarps), 0, call.stream>>>(
      ClassifiedRowsOf(call), call.Out<float>(0), call.Out<int32_t>(1));
  THIMBLE_CUDA_LAUNCHED();
}

void SoftmaxCrossEntropyGradCuda::Run(const KernelCall& call) {
  const ClassifiedRows in = ClassifiedRowsOf(call);
  if (in.rows == 0) return;
  const int64_t blocks = std::min((in.rows - 1) / kGradWarps + 1, kMaxGradBlocks);
  SoftmaxCrossEntropyGradKernel<<<static_cast<unsigned>(blocks), dim3(kRowLanes, kGradWarps), 0,
                                  call.stream>>>(in, call.In<float>(2), call.Out<float>(0));
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
