// The kernels of forward convolutions, whose weights have source channels innermost and are packed,
// with factors of 16 bits.
#include "thimble/ops/conv2d/cuda/tap_launch.cuh"

namespace thimble::tap {

template void LaunchShortTaps<Weights::kSourceInner, Math::kF16, true>(cudaStream_t,
                                                                       const TapConvolution&,
                                                                       const TapArrays&);
template void LaunchShortTaps<Weights::kSourceInner, Math::kBF16, true>(cudaStream_t,
                                                                        const TapConvolution&,
                                                                        const TapArrays&);

}  // namespace thimble::tap
