#include <algorithm>
#include <array>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/dropout/dropout.h"

namespace thimble {
namespace {

template <class Storage>
struct DropoutTensors {
  int64_t batch;
  int64_t elements;        // of a sample
  InNumbers<Storage> x;    // (B, elements)
  const int32_t* samples;  // (B)
  const int32_t* epoch;    // (1)
  OutNumbers<Storage> y;   // (B, elements)
};

// A launch has at most this many rows of blocks; blocks loop over the remaining samples.
constexpr int64_t kMaxSampleBlocks = 1 << 15;

__device__ float Dropped(const DropoutDraw& draw, uint32_t word, float x) {
  return draw.Keeps(word) ? x * draw.scale : 0.0F;
}

// The elements of one draw: all four at once if addresses allow it, otherwise one by one.
template <class Storage, bool kAligned>
__device__ void DropFour(const DropoutDraw& draw, const std::array<uint32_t, 4>& words,
                         InNumbers<Storage> x, OutNumbers<Storage> y, int64_t count) {
  static_assert(kElementsPerDraw == 4);
  if constexpr (kAligned) {
    const auto in = LoadPack<4>(x);
    const float out[4] = {Dropped(draw, words[0], in[0]), Dropped(draw, words[1], in[1]),
                          Dropped(draw, words[2], in[2]), Dropped(draw, words[3], in[3])};
    StorePack(out, y);
  } else {
#pragma unroll
    for (int k = 0; k < kElementsPerDraw; ++k) {
      if (k < count) StoreNumber(Dropped(draw, words[k], LoadNumber(x + k)), y + k);
    }
  }
}

// A row of blocks for each sample, a thread for each draw.
template <class Storage, bool kAligned>
__global__ void __launch_bounds__(kElementThreads)
    DropoutKernel(DropoutDraw draw, DropoutTensors<Storage> tensors) {
  WaitForKernelsBefore();
  const auto epoch = static_cast<uint32_t>(tensors.epoch[0]);
  const int64_t draws = (tensors.elements + kElementsPerDraw - 1) / kElementsPerDraw;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t b = blockIdx.y; b < tensors.batch; b += gridDim.y) {
    const auto sample = static_cast<uint32_t>(tensors.samples[b]);
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < draws; i += step) {
      const int64_t element = i * kElementsPerDraw;
      const int64_t place = b * tensors.elements + element;
      DropFour<Storage, kAligned>(draw, draw.Words(epoch, sample, static_cast<uint32_t>(i)),
                                  tensors.x + place, tensors.y + place, tensors.elements - element);
    }
  }
}

template <class Storage, bool kAligned>
void LaunchDropout(const KernelCall& call) {
  const Shape& x = call.in_shape(0);
  const DropoutTensors<Storage> tensors{
      .batch = x[0],
      .elements = ElementsPerSample(x),
      .x = As<Storage>(ConstNumbersOf(call.inputs[0])),
      .samples = call.In<int32_t>(1),
      .epoch = call.In<int32_t>(2),
      .y = As<Storage>(NumbersOf(call.outputs[0])),
  };
  const int64_t draws = (tensors.elements + kElementsPerDraw - 1) / kElementsPerDraw;
  const dim3 blocks(
      static_cast<unsigned>(std::min((draws - 1) / kElementThreads + 1, kMaxElementBlocks)),
      static_cast<unsigned>(std::min(tensors.batch, kMaxSampleBlocks)));
  DropoutKernel<Storage, kAligned>
      <<<blocks, kElementThreads, 0, call.stream>>>(DrawOf(call), tensors);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace

void DropoutCuda::Run(const KernelCall& call) {
  if (call.in_shape(0).elements() == 0) return;
  const std::array types{call.inputs[0].dtype, call.outputs[0].dtype};
  if (ElementsPerSample(call.in_shape(0)) % kElementsPerDraw == 0 &&
      AllAligned16(call.inputs[0].data, call.outputs[0].data)) {
    WithCommonStorage(types, [&](auto storage) { LaunchDropout<decltype(storage), true>(call); });
  } else {
    WithFloatsOrAny(types, [&](auto storage) { LaunchDropout<decltype(storage), false>(call); });
  }
}

}  // namespace thimble
