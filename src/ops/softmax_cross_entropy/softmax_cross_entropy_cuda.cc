#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy_cuda.h"

#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy_device.h"

namespace thimble {
namespace {

ClassifiedRows RowsOf(const KernelCall& call) {
  const Shape& logits = call.in_shape(0);  // (B, N)
  return {call.In<float>(0), call.In<int32_t>(1), logits[0], logits[1],
          call.attributes.Float("divisor")};
}

}  // namespace

void SoftmaxCrossEntropyCuda::Run(const KernelCall& call) {
  LaunchSoftmaxCrossEntropy(call.stream, RowsOf(call), call.Out<float>(0), call.Out<int32_t>(1));
}

void SoftmaxCrossEntropyGradCuda::Run(const KernelCall& call) {
  LaunchSoftmaxCrossEntropyGrad(call.stream, RowsOf(call), call.In<float>(2), call.Out<float>(0));
}

}  // namespace thimble
