// One kernel: a block computes the weights of the taps of its positions and multiplies them with
// rows of x in shared memory. No bit of y depends on how positions and channels are divided among
// blocks.
#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/dropout/weight_dropout.cuh"
#include "thimble/ops/dynamic_conv/band_convolution.cuh"
#include "thimble/ops/dynamic_conv/dynamic_conv.h"
#include "thimble/ops/dynamic_conv/head_rows.cuh"
#include "thimble/ops/dynamic_conv/tap_weights.cuh"
#include "thimble/ops/dynamic_conv/weight_band.cuh"

namespace thimble {
namespace {

// For each position, see ComputeTapWeights.
__host__ __device__ constexpr int ProbabilityFloats(int taps) {
  return taps > kMostTapsAtOnce ? TapPitch(taps) : 0;
}

template <class Storage, bool kWalks>
__global__ void __launch_bounds__(kMostTapThreads, kConvBlocks<kWalks>)
    DynamicConvKernel(TapSizes sizes, ConvPlan plan, WeightDraw dropout, InNumbers<Storage> logits,
                      const int32_t* lengths, ConvArrays<Storage> arrays) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const ConvBlock block(plan);
  const SentenceHead head(sizes, lengths, block.b, block.h);
  const ConvShared<Storage> places(plan, sizes.taps, shared);
  float* probabilities = places.more;
  const SentenceDraw draw(dropout, block.b,
                          places.more + plan.tile * ProbabilityFloats(sizes.taps));
  ConvolvePart<kWalks>(
      sizes, plan, block, head, sizes.before, arrays, places, [&](const BandTile<Storage>& tile) {
        ComputeTapWeights<false, Storage>(
            TapRows{.rows = min(tile.count, head.length - tile.first),
                    .stride = sizes.heads * sizes.taps,
                    .first_drawn = sizes.Drawn(tile.first, block.h)},
            logits + sizes.Row(block.b, tile.first, block.h) * sizes.taps, sizes.taps, draw,
            probabilities, [&](int row, int tap, const GroupOfTaps& weights) {
              float* to = places.band + BandPlace(sizes.taps, row, tap);
#pragma unroll
              for (int i = 0; i < kTapGroup; ++i) {
                if (tap + i < sizes.taps) to[i * kBandTapStep] = weights[i];
              }
            });
      });
}

template <class Storage>
void RunConvForward(const KernelCall& call) {
  const TapSizes sizes = TapSizesOf(call);
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  constexpr size_t kBytes = sizeof(RowElement<Storage>);
  const int more_floats = ProbabilityFloats(sizes.taps) + FloatsForKept(sizes.taps);
  ConvPlan plan = ConvPlanFor(sizes, kBytes, more_floats, x.data == y.data);
  plan.aligned = RowsAreAligned<Storage>(sizes, x, y);
  const auto tile_kernel = DynamicConvKernel<Storage, false>;
  const auto walking_kernel = DynamicConvKernel<Storage, true>;
  static const bool permitted =
      PermitTapSharedBytes(tile_kernel) && PermitTapSharedBytes(walking_kernel);
  static_cast<void>(permitted);
  const auto kernel = plan.walks() ? walking_kernel : tile_kernel;
  kernel<<<plan.Blocks(sizes), TapThreads(plan.tile, plan.chunk),
           plan.SharedBytes(sizes.taps, kBytes), call.stream>>>(
      sizes, plan, WeightDraw(call, 3), As<Storage>(ConstNumbersOf(call.inputs[1])),
      call.In<int32_t>(2),
      ConvArrays<Storage>{As<Storage>(ConstNumbersOf(x)), As<Storage>(NumbersOf(y))});
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace

std::string_view DynamicConvCuda::Declines(const OpCall& call) { return DeclinesTaps(call); }

void DynamicConvCuda::Run(const KernelCall& call) {
  if (call.out_shape(0).elements() == 0) return;
  const std::array types{call.inputs[0].dtype, call.inputs[1].dtype, call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) { RunConvForward<decltype(type)>(call); });
}

}  // namespace thimble
