#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/add/add_device.h"

namespace thimble {
namespace {

struct AddElement {
  const float* a;
  const float* b;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = a[i] + b[i]; }
};

struct AddFour {
  const float4* a;
  const float4* b;
  float4* y;
  __device__ void operator()(int64_t i) const {
    const float4 p = a[i];
    const float4 q = b[i];
    y[i] = make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);
  }
};

}  // namespace

void LaunchAdd(cudaStream_t stream, const float* a, const float* b, float* y, int64_t elements) {
  if (elements % 4 == 0 && AllAligned16(a, b, y)) {
    LaunchElements(stream, elements / 4,
                   AddFour{reinterpret_cast<const float4*>(a), reinterpret_cast<const float4*>(b),
                           reinterpret_cast<float4*>(y)});
  } else {
    LaunchElements(stream, elements, AddElement{a, b, y});
  }
}

}  // namespace thimble
