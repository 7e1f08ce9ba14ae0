#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/add/add.h"

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

void AddCuda::Run(const KernelCall& call) {
  const float* a = call.In<float>(0);
  const float* b = call.In<float>(1);
  float* y = call.Out<float>(0);
  const int64_t elements = call.out_shape(0).elements();
  if (elements % 4 == 0 && AllAligned16(a, b, y)) {
    LaunchElements(call.stream, elements / 4,
                   AddFour{reinterpret_cast<const float4*>(a), reinterpret_cast<const float4*>(b),
                           reinterpret_cast<float4*>(y)});
  } else {
    LaunchElements(call.stream, elements, AddElement{a, b, y});
  }
}

}  // namespace thimble
