#include "thimble/ops/linear/linear_cuda.h"

#include "thimble/ops/linear/linear_device.h"

namespace thimble {

// y (B, N) = x (B, F) * w transposed (F, N) + b.
void LinearCuda::Run(const KernelCall& call) {
  const Shape& w = call.in_shape(1);  // (N, F)
  const int64_t features = w[1];
  LaunchProduct(call.stream, {call.out_shape(0)[0], w[0], features},
                {call.In<float>(0), features, 1}, {call.In<float>(1), 1, features},
                call.In<float>(2), call.Out<float>(0));
}

// dw (N, F) = dy transposed (N, B) * x (B, F).
void LinearGradWeightCuda::Run(const KernelCall& call) {
  const Shape& dw = call.out_shape(0);
  LaunchProduct(call.stream, {dw[0], dw[1], call.in_shape(1)[0]}, {call.In<float>(1), 1, dw[0]},
                {call.In<float>(0), dw[1], 1}, nullptr, call.Out<float>(0));
}

void LinearGradBiasCuda::Run(const KernelCall& call) {
  const Shape& dy = call.in_shape(0);  // (B, N)
  LaunchColumnSums(call.stream, dy[0], dy[1], call.In<float>(0), call.Out<float>(0));
}

// dx (B, F) = dy (B, N) * w (N, F).
void LinearGradInputCuda::Run(const KernelCall& call) {
  const Shape& w = call.in_shape(0);
  LaunchProduct(call.stream, {call.in_shape(1)[0], w[1], w[0]}, {call.In<float>(1), w[0], 1},
                {call.In<float>(0), w[1], 1}, nullptr, call.Out<float>(0));
}

}  // namespace thimble
