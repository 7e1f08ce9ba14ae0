#include "thimble/ops/relu/relu_cuda.h"

#include "thimble/ops/relu/relu_device.h"

namespace thimble {

void ReluCuda::Run(const KernelCall& call) {
  LaunchRelu(call.stream, call.In<float>(0), call.Out<float>(0), call.out_shape(0).elements());
}

void ReluGradCuda::Run(const KernelCall& call) {
  LaunchReluGrad(call.stream, call.In<float>(0), call.In<float>(1), call.Out<float>(0),
                 call.out_shape(0).elements());
}

}  // namespace thimble
