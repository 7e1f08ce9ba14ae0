// One block makes a tile of result pixels by a tile of result channels, part by part of the source
// channels. The source pixels that the tile's taps reach and the weights of all taps lie in shared
// memory, so that each is read from global memory about once and not once for each tap. In TF32
// both are rounded on their way in, and warps multiply 16x8x8 blocks on tensor cores straight out
// of the shifted tile; in fp32 each lane multiplies for the same sums that it would hold then.
//
// Half of a block's threads copy and round, the others multiply: parts go through a ring of slots
// in shared memory from the ones to the others, so that neither waits for long.
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>

#include "thimble/ops/conv2d/cuda/tap_convolution.h"
#include "thimble/ops/conv2d/cuda/tap_launch.cuh"

namespace thimble {
namespace tap {

extern template void LaunchTaps<Weights::kSourceInner>(cudaStream_t, const TapConvolution&, Math,
                                                       const TapArrays&);
extern template void LaunchTaps<Weights::kResultInner>(cudaStream_t, const TapConvolution&, Math,
                                                       const TapArrays&);

}  // namespace tap

namespace {

// 227 KB are the most of an H100's, 163 KB of an A100's block.
constexpr size_t kMaxSharedBytes = size_t{160} << 10;

// Taps by row and column: an input gradient has them the other way round.
void SortTaps(TapGrid& grid) {
  std::sort(grid.taps, grid.taps + grid.num_taps, [](const Tap& a, const Tap& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  });
}

}  // namespace

bool FitsTapConvolution(const TapConvolution& c) {
  const int64_t image_floats = static_cast<int64_t>(c.height) * c.width * c.channels;
  const auto fits = [&]<class T>() {
    return tap::SlotBytes<T>(c) + tap::TableBytes<T>(c) <= kMaxSharedBytes &&
           tap::AreaOf<T>(c).pixels() < kMaxTilePixels && T::kImages * image_floats <= INT_MAX;
  };
  return tap::WithTile<Math::kTf32, Channels::kFours>(c, fits) &&
         tap::WithTile<Math::kFp32, Channels::kOdd>(c, fits);
}

void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                          const TapArrays& arrays) {
  TapConvolution c = convolution;
  for (int grid = 0; grid < c.num_grids; ++grid) SortTaps(c.grids[grid]);
  if (c.k_stride == 1) {
    tap::LaunchTaps<tap::Weights::kSourceInner>(stream, c, math, arrays);
  } else {
    tap::LaunchTaps<tap::Weights::kResultInner>(stream, c, math, arrays);
  }
}

}  // namespace thimble
