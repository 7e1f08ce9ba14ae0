#include <array>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/packed.cuh"
#include "thimble/ops/conv2d/cuda/plain_convolution.h"
#include "thimble/ops/conv2d/cuda/sum_target.cuh"

namespace thimble {
namespace {

// Weights by their index.
template <class Storage>
struct DenseWeights {
  InNumbers<Storage> numbers;
  __device__ float operator[](int64_t i) const { return LoadNumber(numbers + i); }
};
struct PackedWeights {
  ConstNumbers pool;
  PackedPlace packed;
  __device__ float operator[](int64_t i) const { return LoadElement(packed, pool, i); }
};

// Storage is float, or AnyNumber for any mix of types.
template <class Storage, class Weights>
struct ForwardElement {
  PlainConvolution c;
  InNumbers<Storage> x, other;
  Weights w;
  bool adds;
  OutNumbers<Storage> y;

  __device__ void operator()(int64_t i) const {
    const int out = static_cast<int>(i % c.out_channels);
    const int64_t pixel = i / c.out_channels;
    const int left = static_cast<int>(pixel % c.out_width) * c.stride - c.padding;
    const int top = static_cast<int>(pixel / c.out_width % c.out_height) * c.stride - c.padding;
    const int64_t image = pixel / c.out_width / c.out_height;
    int64_t weight = int64_t{out} * c.kernel_height * c.kernel_width * c.channels;
    float sum = 0;
    for (int kh = 0; kh < c.kernel_height; ++kh) {
      for (int kw = 0; kw < c.kernel_width; ++kw, weight += c.channels) {
        const int row = top + kh;
        const int column = left + kw;
        if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
        const int64_t from = ((image * c.height + row) * c.width + column) * c.channels;
        for (int k = 0; k < c.channels; ++k) {
          sum = fmaf(LoadNumber(x + from + k), w[weight + k], sum);
        }
      }
    }
    StoreNumber(adds ? sum + LoadNumber(other + i) : sum, y + i);
  }
};

template <class Storage, class Weights>
struct GradInputElement {
  PlainConvolution c;
  InNumbers<Storage> dy;
  Weights w;
  OutNumbers<Storage> dx;

  __device__ void operator()(int64_t i) const {
    const int channel = static_cast<int>(i % c.channels);
    const int64_t pixel = i / c.channels;
    const int column = static_cast<int>(pixel % c.width);
    const int row = static_cast<int>(pixel / c.width % c.height);
    const int64_t image = pixel / c.width / c.height;
    const int64_t window = int64_t{c.kernel_height} * c.kernel_width * c.channels;
    float sum = 0;
    for (int kh = 0; kh < c.kernel_height; ++kh) {
      for (int kw = 0; kw < c.kernel_width; ++kw) {
        const int down = row + c.padding - kh;
        const int across = column + c.padding - kw;
        if (down < 0 || across < 0 || down % c.stride != 0 || across % c.stride != 0) continue;
        const int out_row = down / c.stride;
        const int out_column = across / c.stride;
        if (out_row >= c.out_height || out_column >= c.out_width) continue;
        const int64_t from =
            ((image * c.out_height + out_row) * c.out_width + out_column) * c.out_channels;
        const int64_t weight = (kh * c.kernel_width + kw) * c.channels + channel;
        for (int o = 0; o < c.out_channels; ++o) {
          sum = fmaf(LoadNumber(dy + from + o), w[weight + o * window], sum);
        }
      }
    }
    StoreNumber(sum, dx + i);
  }
};

// A block computes one element of dw: each thread sums a strand of its pixels, then a tree adds the
// strands.
constexpr int kStrands = 128;

template <class Storage>
__global__ void __launch_bounds__(kStrands)
    GradWeightKernel(const __grid_constant__ PlainConvolution c, InNumbers<Storage> x,
                     InNumbers<Storage> dy, int64_t first,
                     const __grid_constant__ SumTarget target) {
  __shared__ float strands[kStrands];
  const int64_t element = first + blockIdx.x;
  const int channel = static_cast<int>(element % c.channels);
  const int tap = static_cast<int>(element / c.channels % (c.kernel_height * c.kernel_width));
  const int64_t out = element / c.channels / (c.kernel_height * c.kernel_width);
  const int64_t pixels = int64_t{c.batch} * c.out_height * c.out_width;
  float sum = 0;
  WaitForKernelsBefore();
  for (int64_t pixel = threadIdx.x; pixel < pixels; pixel += kStrands) {
    const int column =
        static_cast<int>(pixel % c.out_width) * c.stride - c.padding + tap % c.kernel_width;
    const int row = static_cast<int>(pixel / c.out_width % c.out_height) * c.stride - c.padding +
                    tap / c.kernel_width;
    if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
    const int64_t image = pixel / c.out_width / c.out_height;
    sum = fmaf(LoadNumber(x + ((image * c.height + row) * c.width + column) * c.channels + channel),
               LoadNumber(dy + pixel * c.out_channels + out), sum);
  }
  strands[threadIdx.x] = sum;
  for (int half = kStrands / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      strands[threadIdx.x] += strands[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) HandOverSums<1>({strands[0]}, target, element);
}

}  // namespace

void LaunchPlainForward(cudaStream_t stream, const PlainConvolution& c, const ConstNumbers& x,
                        const ConstNumbers& w, const PackedPlace& packed, const ConstNumbers& other,
                        const Numbers& y) {
  const bool adds = other.data != nullptr;
  const auto launch_with = [&]<class Storage, class Weights>(Storage, const Weights& weights) {
    LaunchElements(stream, int64_t{c.batch} * c.out_height * c.out_width * c.out_channels,
                   ForwardElement<Storage, Weights>{c, As<Storage>(x), As<Storage>(other), weights,
                                                    adds, As<Storage>(y)});
  };
  if (packed.is_packed()) return launch_with(AnyNumber{}, PackedWeights{w, packed});
  const auto launch = [&]<class Storage>(Storage storage) {
    launch_with(storage, DenseWeights<Storage>{As<Storage>(w)});
  };
  WithFloatsOrAny(std::array{x.type, w.type, adds ? other.type : x.type, y.type}, launch);
}

void LaunchPlainGradInput(cudaStream_t stream, const PlainConvolution& c, const ConstNumbers& w,
                          const PackedPlace& packed, const ConstNumbers& dy, const Numbers& dx) {
  const auto launch_with = [&]<class Storage, class Weights>(Storage, const Weights& weights) {
    LaunchElements(
        stream, int64_t{c.batch} * c.height * c.width * c.channels,
        GradInputElement<Storage, Weights>{c, As<Storage>(dy), weights, As<Storage>(dx)});
  };
  if (packed.is_packed()) return launch_with(AnyNumber{}, PackedWeights{w, packed});
  const auto launch = [&]<class Storage>(Storage storage) {
    launch_with(storage, DenseWeights<Storage>{As<Storage>(w)});
  };
  WithFloatsOrAny(std::array{w.type, dy.type, dx.type}, launch);
}

void LaunchPlainGradWeight(cudaStream_t stream, const PlainConvolution& c, const ConstNumbers& x,
                           const ConstNumbers& dy, const ElementRange& range, const SumTarget& dw) {
  if (range.count == 0) return;
  const auto launch = [&]<class Storage>(Storage) {
    GradWeightKernel<Storage><<<static_cast<unsigned>(range.count), kStrands, 0, stream>>>(
        c, As<Storage>(x), As<Storage>(dy), range.first, dw);
    THIMBLE_CUDA_LAUNCHED();
  };
  WithFloatsOrAny(std::array{x.type, dy.type}, launch);
}

}  // namespace thimble
