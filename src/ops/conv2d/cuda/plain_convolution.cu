#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/number_array.cuh"
#include "thimble/ops/conv2d/cuda/plain_convolution.h"

namespace thimble {
namespace {

// In and Out are pointers to floats, or arrays of any type.
template <class In, class Out>
struct ForwardElement {
  PlainConvolution c;
  In x, w;
  In other;
  bool adds;
  Out y;

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
          sum = fmaf(NumberAt(x, from + k), NumberAt(w, weight + k), sum);
        }
      }
    }
    SetNumberAt(y, i, adds ? sum + NumberAt(other, i) : sum);
  }
};

template <class In, class Out>
struct GradInputElement {
  PlainConvolution c;
  In w, dy;
  Out dx;

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
          sum = fmaf(NumberAt(dy, from + o), NumberAt(w, weight + o * window), sum);
        }
      }
    }
    SetNumberAt(dx, i, sum);
  }
};

// A block computes one element of dw: each thread sums a strand of its pixels, then a tree adds the
// strands.
constexpr int kStrands = 128;

template <class In, class Out>
__global__ void __launch_bounds__(kStrands)
    GradWeightKernel(const __grid_constant__ PlainConvolution c, In x, In dy, Out dw) {
  __shared__ float strands[kStrands];
  const int64_t element = blockIdx.x;
  const int channel = static_cast<int>(element % c.channels);
  const int tap = static_cast<int>(element / c.channels % (c.kernel_height * c.kernel_width));
  const int64_t out = element / c.channels / (c.kernel_height * c.kernel_width);
  const int64_t pixels = int64_t{c.batch} * c.out_height * c.out_width;
  float sum = 0;
  for (int64_t pixel = threadIdx.x; pixel < pixels; pixel += kStrands) {
    const int column =
        static_cast<int>(pixel % c.out_width) * c.stride - c.padding + tap % c.kernel_width;
    const int row = static_cast<int>(pixel / c.out_width % c.out_height) * c.stride - c.padding +
                    tap / c.kernel_width;
    if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
    const int64_t image = pixel / c.out_width / c.out_height;
    sum = fmaf(NumberAt(x, ((image * c.height + row) * c.width + column) * c.channels + channel),
               NumberAt(dy, pixel * c.out_channels + out), sum);
  }
  strands[threadIdx.x] = sum;
  for (int half = kStrands / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      strands[threadIdx.x] += strands[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) SetNumberAt(dw, element, strands[0]);
}

const float* Floats(const ConstNumberArray& array) { return static_cast<const float*>(array.data); }
float* Floats(const NumberArray& array) { return static_cast<float*>(array.data); }

// Calls visit with the arrays, as pointers if all store floats.
template <class Visit, class... Arrays>
void WithPointersIfFloats(const Visit& visit, const Arrays&... arrays) {
  if (((arrays.type == DType::kF32) && ...)) {
    visit(Floats(arrays)...);
  } else {
    visit(arrays...);
  }
}

}  // namespace

void LaunchPlainForward(cudaStream_t stream, const PlainConvolution& c, const ConstNumberArray& x,
                        const ConstNumberArray& w, const ConstNumberArray& other,
                        const NumberArray& y) {
  const auto launch = [&](auto the_x, auto the_w, auto the_other, auto the_y) {
    LaunchElements(stream, int64_t{c.batch} * c.out_height * c.out_width * c.out_channels,
                   ForwardElement<decltype(the_x), decltype(the_y)>{c, the_x, the_w, the_other,
                                                                    other.data != nullptr, the_y});
  };
  WithPointersIfFloats(launch, x, w, other, y);
}

void LaunchPlainGradInput(cudaStream_t stream, const PlainConvolution& c, const ConstNumberArray& w,
                          const ConstNumberArray& dy, const NumberArray& dx) {
  const auto launch = [&](auto the_w, auto the_dy, auto the_dx) {
    LaunchElements(stream, int64_t{c.batch} * c.height * c.width * c.channels,
                   GradInputElement<decltype(the_w), decltype(the_dx)>{c, the_w, the_dy, the_dx});
  };
  WithPointersIfFloats(launch, w, dy, dx);
}

void LaunchPlainGradWeight(cudaStream_t stream, const PlainConvolution& c,
                           const ConstNumberArray& x, const ConstNumberArray& dy,
                           const NumberArray& dw) {
  const int64_t elements = int64_t{c.out_channels} * c.kernel_height * c.kernel_width * c.channels;
  if (elements == 0) return;
  const auto launch = [&](auto the_x, auto the_dy, auto the_dw) {
    GradWeightKernel<<<static_cast<unsigned>(elements), kStrands, 0, stream>>>(c, the_x, the_dy,
                                                                               the_dw);
    THIMBLE_CUDA_LAUNCHED();
  };
  WithPointersIfFloats(launch, x, dy, dw);
}

}  // namespace thimble
