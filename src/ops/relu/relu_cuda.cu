#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/relu/relu.h"

namespace thimble {
namespace {

// `value` if the gate is open, otherwise 0. Does not test (gate > 0), so that NaN keeps it open.
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

void ReluCuda::Run(const KernelCall& call) {
  const float* x = call.In<float>(0);
  float* y = call.Out<float>(0);
  const int64_t elements = call.out_shape(0).elements();
  if (elements % 4 == 0 && AllAligned16(x, y)) {
    LaunchElements(
        call.stream, elements / 4,
        ReluElement<float4>{reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y)});
  } else {
    LaunchElements(call.stream, elements, ReluElement<float>{x, y});
  }
}

void ReluGradCuda::Run(const KernelCall& call) {
  const float* y = call.In<float>(0);
  const float* dy = call.In<float>(1);
  float* dx = call.Out<float>(0);
  const int64_t elements = call.out_shape(0).elements();
  if (elements % 4 == 0 && AllAligned16(y, dy, dx)) {
    LaunchElements(call.stream, elements / 4,
                   ReluGradElement<float4>{reinterpret_cast<const float4*>(y),
                                           reinterpret_cast<const float4*>(dy),
                                           reinterpret_cast<float4*>(dx)});
  } else {
    LaunchElements(call.stream, elements, ReluGradElement<float>{y, dy, dx});
  }
}

}  // namespace thimble
