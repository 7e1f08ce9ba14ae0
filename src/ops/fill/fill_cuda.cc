#include "thimble/ops/fill/fill_cuda.h"

#include "thimble/ops/fill/fill_device.h"

namespace thimble {

void FillCuda::Run(const KernelCall& call) {
  LaunchFill(call.stream, static_cast<float>(call.attributes.Float("value")), call.Out<float>(0),
             call.out_shape(0).elements());
}

}  // namespace thimble
