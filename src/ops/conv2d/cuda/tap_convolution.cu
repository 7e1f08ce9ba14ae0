// One block computes a tile of result pixels by a tile of result channels, for one part of the
// source channels after another. The source pixels that the tile's taps reach and the weights of
// all taps are in shared memory, so that each is read from global memory about once instead of once
// per tap. In TF32 both are rounded while they are copied, and warps multiply 16x8x8 blocks on
// tensor cores directly from the shifted tile; in fp32 each lane computes the same sums that it
// would hold in TF32.
//
// Half of a block's threads copy and round, the others multiply. Parts pass from one half to the
// other through a ring of slots in shared memory, so that neither waits for long.
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>

#include "thimble/ops/conv2d/cuda/tap_convolution.h"
#include "thimble/ops/conv2d/cuda/tap_launch.cuh"
#include "thimble/ops/conv2d/cuda/wide_convolution.h"

namespace thimble {
namespace tap {

extern template void LaunchTaps<Weights::kSourceInner, false>(cudaStream_t, const TapConvolution&,
                                                              Math, const TapArrays&);
extern template void LaunchTaps<Weights::kResultInner, false>(cudaStream_t, const TapConvolution&,
                                                              Math, const TapArrays&);
extern template void LaunchTaps<Weights::kSourceInner, true>(cudaStream_t, const TapConvolution&,
                                                             Math, const TapArrays&);
extern template void LaunchTaps<Weights::kResultInner, true>(cudaStream_t, const TapConvolution&,
                                                             Math, const TapArrays&);
extern template void LaunchShortTaps<Weights::kSourceInner, Math::kF16, false>(
    cudaStream_t, const TapConvolution&, const TapArrays&);
extern template void LaunchShortTaps<Weights::kSourceInner, Math::kBF16, false>(
    cudaStream_t, const TapConvolution&, const TapArrays&);
extern template void LaunchShortTaps<Weights::kResultInner, Math::kF16, false>(
    cudaStream_t, const TapConvolution&, const TapArrays&);
extern template void LaunchShortTaps<Weights::kResultInner, Math::kBF16, false>(
    cudaStream_t, const TapConvolution&, const TapArrays&);
extern template void LaunchShortTaps<Weights::kSourceInner, Math::kF16, true>(cudaStream_t,
                                                                              const TapConvolution&,
                                                                              const TapArrays&);
extern template void LaunchShortTaps<Weights::kSourceInner, Math::kBF16, true>(
    cudaStream_t, const TapConvolution&, const TapArrays&);
extern template void LaunchShortTaps<Weights::kResultInner, Math::kF16, true>(cudaStream_t,
                                                                              const TapConvolution&,
                                                                              const TapArrays&);
extern template void LaunchShortTaps<Weights::kResultInner, Math::kBF16, true>(
    cudaStream_t, const TapConvolution&, const TapArrays&);

}  // namespace tap

namespace {

// A block can have at most 227 KB on an H100 and 163 KB on an A100.
constexpr size_t kMaxSharedBytes = size_t{160} << 10;

// Sorts taps by row and column: an input gradient has them in reverse order.
void SortTaps(TapGrid& grid) {
  std::sort(grid.taps, grid.taps + grid.num_taps, [](const Tap& a, const Tap& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  });
}

}  // namespace

bool FitsTapConvolution(const TapConvolution& c, Math math) {
  const int64_t image_elements = static_cast<int64_t>(c.height) * c.width * c.channels;
  const auto fits = [&]<class T>() {
    return tap::SlotBytes<T>(c) + tap::TableBytes<T>(c) <= kMaxSharedBytes &&
           tap::AreaOf<T>(c).pixels() < kMaxTilePixels && T::kImages * image_elements <= INT_MAX;
  };
  if (IsShort(math)) return tap::WithShortTile<Math::kF16>(c, fits);
  return tap::WithTile<Math::kTf32, Channels::kFours>(c, fits) &&
         tap::WithTile<Math::kFp32, Channels::kOdd>(c, fits);
}

void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                          const TapArrays& arrays) {
  TapConvolution c = convolution;
  for (int grid = 0; grid < c.num_grids; ++grid) SortTaps(c.grids[grid]);
  if (IsShort(math) && LaunchWideConvolution(stream, c, math, arrays)) return;
  const auto launch = [&]<tap::Weights kLayout, bool kPacked>() {
    if (math == Math::kF16) {
      tap::LaunchShortTaps<kLayout, Math::kF16, kPacked>(stream, c, arrays);
    } else if (math == Math::kBF16) {
      tap::LaunchShortTaps<kLayout, Math::kBF16, kPacked>(stream, c, arrays);
    } else {
      tap::LaunchTaps<kLayout, kPacked>(stream, c, math, arrays);
    }
  };
  const auto launch_layout = [&]<tap::Weights kLayout>() {
    arrays.packed.is_packed() ? launch.template operator()<kLayout, true>()
                              : launch.template operator()<kLayout, false>();
  };
  if (c.k_stride == 1) {
    launch_layout.template operator()<tap::Weights::kSourceInner>();
  } else {
    launch_layout.template operator()<tap::Weights::kResultInner>();
  }
}

}  // namespace thimble
