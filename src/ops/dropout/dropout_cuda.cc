#include "thimble/ops/dropout/dropout_cuda.h"

#include "thimble/ops/dropout/dropout_call.h"
#include "thimble/ops/dropout/dropout_device.h"

namespace thimble {

void DropoutCuda::Run(const KernelCall& call) {
  const Shape& x = call.in_shape(0);
  LaunchDropout(
      call.stream, DrawOf(call),
      {x[0], ElementsPerSample(x), call.In<float>(0), call.In<int32_t>(1), call.In<int32_t>(2)},
      call.Out<float>(0));
}

}  // namespace thimble
