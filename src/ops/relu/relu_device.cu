#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/relu/relu_device.h"

namespace thimble {
namespace {

// `value` where the gate is open. Not (gate > 0), so that a NaN keeps it open.
__device__ float Gated(float gate, float value) { return gate <= 0 ? 0.0F : value; }

__device__ float4 Gated(float4 gate, float4 value) {
  return make_float4(Gated(gate.x, value.x), Gated(gate.y, value.y), Gated(gate.z, value.z),
                     Gated(gate.w, value.w));
}

// Element is float or float4.
template <class Element>
struct ReluElement {
  const Element* x;
  Element* y;
  __device__ void operator()(int64_t i) const {
    const Element in = x[i];
    y[i] = Gated(in, in);
  }
};

template <class Element>
struct ReluGradElement {
  const Element* y;
  const Element* dy;
  Element* dx;
  __device__ void operator()(int64_t i) const { dx[i] = Gated(y[i], dy[i]); }
};

}  // namespace

void LaunchRelu(cudaStream_t stream, const float* x, float* y, int64_t elements) {
  if (elements % 4 == 0 && AllAligned16(x, y)) {
    LaunchElements(
        stream, elements / 4,
        ReluElement<float4>{reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y)});
  } else {
    LaunchElements(stream, elements, ReluElement<float>{x, y});
  }
}

void LaunchReluGrad(cudaStream_t stream, const float* y, const float* dy, float* dx,
                    int64_t elements) {
  if (elements % 4 == 0 && AllAligned16(y, dy, dx)) {
    LaunchElements(stream, elements / 4,
                   ReluGradElement<float4>{reinterpret_cast<const float4*>(y),
                                           reinterpret_cast<const float4*>(dy),
                                           reinterpret_cast<float4*>(dx)});
  } else {
    LaunchElements(stream, elements, ReluGradElement<float>{y, dy, dx});
  }
}

}  // namespace thimble
