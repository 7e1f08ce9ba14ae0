// The kernels of forward convolutions, whose weights have source channels innermost.
#include "thimble/ops/conv2d/cuda/tap_launch.cuh"

namespace thimble::tap {

template void LaunchTaps<Weights::kSourceInner, false>(cudaStream_t, const TapConvolution&, Math,
                                                       const TapArrays&);

}  // namespace thimble::tap
