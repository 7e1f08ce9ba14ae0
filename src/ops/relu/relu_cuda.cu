#include "thimble/device/cuda/map_numbers.cuh"
#include "thimble/ops/relu/relu.h"

namespace thimble {
namespace {

// `value` if the gate is open, otherwise 0. Does not test (gate > 0), so that NaN keeps it open.
struct ReluGate {
  __device__ float operator()(float gate, float value) const { return gate <= 0 ? 0.0F : value; }
};

struct ReluElement {
  __device__ float operator()(float x) const { return ReluGate{}(x, x); }
};

}  // namespace

void ReluCuda::Run(const KernelCall& call) {
  LaunchMap(call.stream, call.inputs.first<1>(), call.outputs[0], ReluElement{});
}

void ReluGradCuda::Run(const KernelCall& call) {
  LaunchMap(call.stream, call.inputs.first<2>(), call.outputs[0], ReluGate{});
}

}  // namespace thimble
