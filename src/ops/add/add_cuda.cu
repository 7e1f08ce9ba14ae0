#include "thimble/device/cuda/map_numbers.cuh"
#include "thimble/ops/add/add.h"

namespace thimble {
namespace {

struct AddElement {
  __device__ float operator()(float a, float b) const { return a + b; }
};

}  // namespace

void AddCuda::Run(const KernelCall& call) {
  LaunchMap(call.stream, call.inputs.first<2>(), call.outputs[0], AddElement{});
}

}  // namespace thimble
