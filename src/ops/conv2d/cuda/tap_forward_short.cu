// The kernels of forward convolutions, whose weights have source channels innermost,
// with factors of 16 bits.
#include "thimble/ops/conv2d/cuda/tap_launch.cuh"

namespace thimble::tap {

template void LaunchShortTaps<Weights::kSourceInner, Math::kF16, false>(cudaStream_t,
                                                                        const TapConvolution&,
                                                                        const TapArrays&);
template void LaunchShortTaps<Weights::kSourceInner, Math::kBF16, false>(cudaStream_t,
                                                                         const TapConvolution&,
                                                                         const TapArrays&);

}  // namespace thimble::tap
