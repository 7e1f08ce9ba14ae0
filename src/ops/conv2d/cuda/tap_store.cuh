// Stores the sums of a TapConvolution, after another array is added.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/conv2d/cuda/factor_groups.cuh"
#include "thimble/ops/conv2d/cuda/tap_multiply.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// Calls visit(m, n, half, offset, valid) for this lane's sums: pairs of neighbouring result
// channels, `valid` of which exist, at an offset from the beginning of the result; eight
// neighbouring pixels of a block's halves, its lines downwards.
template <class T, class Visit>
__device__ void ForEachPair(const TapConvolution& c, const Item& item, const Visit& visit) {
  const TapGrid& grid = c.grids[item.grid];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_pixel = Multiplier() / T::kWarpsN * T::kWarpPixels;
  const int channel = item.result + Multiplier() % T::kWarpsN * T::kWarpChannels + lane % 4 * 2;
  const int64_t line_floats = static_cast<int64_t>(c.out_step) * c.out_width * c.out_channels;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const TilePixel place = T::PixelAt(warp_pixel + half * 8 + lane / 4);
    const int image = item.image + place.image;
    const int row = item.row + place.row;
    const int column = item.column + place.column;
    if (image >= c.batch || column >= grid.columns) continue;
    const int64_t out_row =
        static_cast<int64_t>(image) * c.out_height + grid.out_row + row * c.out_step;
    const int64_t first =
        channel + (out_row * c.out_width + grid.out_column + column * c.out_step) * c.out_channels;
#pragma unroll
    for (int m = 0; m < T::kBlocksM; ++m) {
      if (row + m >= grid.rows) break;
#pragma unroll
      for (int n = 0; n < T::kBlocksN; ++n) {
        visit(m, n, half, first + m * line_floats + n * 8, c.out_channels - channel - n * 8);
      }
    }
  }
}

// Two neighbouring result channels; only `valid` of them exist.
template <Channels kChannels>
__device__ float2 LoadPair(const InNumbers<FloatStorage<kChannels>>& from, int valid) {
  if constexpr (kChannels == Channels::kFours) {
    return valid > 0 ? *reinterpret_cast<const float2*>(from) : make_float2(0, 0);
  }
  return make_float2(valid > 0 ? LoadNumber(from) : 0, valid > 1 ? LoadNumber(from + 1) : 0);
}
template <Channels kChannels>
__device__ void StorePair(const OutNumbers<FloatStorage<kChannels>>& to, int valid,
                          const float2& pair) {
  if constexpr (kChannels == Channels::kFours) {
    if (valid > 0) *reinterpret_cast<float2*>(to) = pair;
  } else {
    if (valid > 0) StoreSingly(pair.x, to);
    if (valid > 1) StoreSingly(pair.y, to + 1);
  }
}

// The results of TF32 and fp32. For a window, the values to add are loaded while the last part is
// multiplied; other kernels run more blocks and have no registers for that.
template <class T, Channels kChannels, Taps kTaps>
class FloatResults {
  static constexpr bool kAddedEarly = kTaps == Taps::kWindow;

 public:
  __device__ FloatResults(const TapConvolution& c, const TapArrays& arrays)
      : c_(c),
        adds_(arrays.other.data != nullptr),
        other_(As<FloatStorage<kChannels>>(arrays.other)),
        result_(As<FloatStorage<kChannels>>(arrays.result)) {}

  __device__ void Begin(const Item& item) {
    if (!adds_ || !kAddedEarly) return;
    ForEachPair<T>(c_, item, [&](int m, int n, int half, int64_t offset, int valid) {
      const float2 pair = LoadPair<kChannels>(other_ + offset, valid);
      added_.values[m][n][2 * half] = pair.x;
      added_.values[m][n][2 * half + 1] = pair.y;
    });
  }

  __device__ void Store(const Item& item, Sums<T>& sums) const {
    if (adds_ && kAddedEarly) AddTo(sums);
    ForEachPair<T>(c_, item, [&](int m, int n, int half, int64_t offset, int valid) {
      float2 pair = make_float2(sums.values[m][n][2 * half], sums.values[m][n][2 * half + 1]);
      if (adds_ && !kAddedEarly) {
        const float2 added = LoadPair<kChannels>(other_ + offset, valid);
        pair = make_float2(pair.x + added.x, pair.y + added.y);
      }
      StorePair<kChannels>(result_ + offset, valid, pair);
    });
  }

 private:
  __device__ void AddTo(Sums<T>& sums) const {
#pragma unroll
    for (int m = 0; m < T::kBlocksM; ++m) {
#pragma unroll
      for (int n = 0; n < T::kBlocksN; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums.values[m][n][i] += added_.values[m][n][i];
      }
    }
  }

  const TapConvolution& c_;
  bool adds_;
  InNumbers<FloatStorage<kChannels>> other_;
  OutNumbers<FloatStorage<kChannels>> result_;
  Sums<T> added_;
};

// Adds what is stored at `offset`, if there is another array, and stores. Not inlined, because it
// is rarely used and would be most of a kernel's code.
static __noinline__ __device__ void StoreOfAnyType(ConstNumbers other, Numbers result,
                                                   int64_t offset, float sum) {
  if (other.data != nullptr) sum += LoadNumber(AnyPointer<const void>(other) + offset);
  StoreNumber(sum, AnyPointer<void>(result) + offset);
}

// The results of factors of 16 bits. If the arrays store them as the factors are stored, pairs are
// words, and a window's values to add are loaded early; otherwise numbers are stored one by one.
template <class T, Taps kTaps>
class ShortResults {
  using Number = typename T::Number;
  static constexpr bool kAddedEarly = kTaps == Taps::kWindow && T::kBlocksM * T::kBlocksN <= 8;

 public:
  __device__ ShortResults(const TapConvolution& c, const TapArrays& arrays)
      : c_(c),
        other_(arrays.other),
        result_(arrays.result),
        adds_(other_.data != nullptr),
        in_words_(c.out_channels % 2 == 0 && result_.type == DTypeOf<Number>() &&
                  (!adds_ || other_.type == DTypeOf<Number>())) {}

  __device__ void Begin(const Item& item) {
    if (!kAddedEarly || !adds_ || !in_words_) return;
    ForEachPair<T>(c_, item, [&](int m, int n, int half, int64_t offset, int valid) {
      added_[m][n][half] = valid > 0 ? OtherWord(offset) : 0;
    });
  }

  __device__ void Store(const Item& item, const Sums<T>& sums) const {
    if (in_words_) {
      ForEachPair<T>(c_, item, [&](int m, int n, int half, int64_t offset, int valid) {
        if (valid <= 0) return;
        float2 pair = make_float2(sums.values[m][n][2 * half], sums.values[m][n][2 * half + 1]);
        if (adds_) {
          const float2 added =
              DecodeTwo<Number>(kAddedEarly ? added_[m][n][half] : OtherWord(offset));
          pair = make_float2(pair.x + added.x, pair.y + added.y);
        }
        *reinterpret_cast<uint32_t*>(static_cast<Number*>(result_.data) + offset) =
            EncodeTwo<Number>(pair.x, pair.y);
      });
    } else {
      ForEachPair<T>(c_, item, [&](int m, int n, int half, int64_t offset, int valid) {
        const float* pair = &sums.values[m][n][2 * half];
        if (valid > 0) StoreOfAnyType(other_, result_, offset, pair[0]);
        if (valid > 1) StoreOfAnyType(other_, result_, offset + 1, pair[1]);
      });
    }
  }

 private:
  __device__ uint32_t OtherWord(int64_t offset) const {
    return *reinterpret_cast<const uint32_t*>(static_cast<const Number*>(other_.data) + offset);
  }

  const TapConvolution& c_;
  ConstNumbers other_;
  Numbers result_;
  bool adds_;
  bool in_words_;
  uint32_t added_[T::kBlocksM][T::kBlocksN][2];
};

}  // namespace thimble::tap
