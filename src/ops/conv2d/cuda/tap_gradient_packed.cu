// The kernels of input gradients, whose weights have result channels innermost and are packed.
#include "thimble/ops/conv2d/cuda/tap_launch.cuh"

namespace thimble::tap {

template void LaunchTaps<Weights::kResultInner, true>(cudaStream_t, const TapConvolution&, Math,
                                                      const TapArrays&);

}  // namespace thimble::tap
