#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/fill/fill_device.h"

namespace thimble {
namespace {

struct FillElement {
  float value;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = value; }
};

}  // namespace

void LaunchFill(cudaStream_t stream, float value, float* y, int64_t elements) {
  LaunchElements(stream, elements, FillElement{value, y});
}

}  // namespace thimble
