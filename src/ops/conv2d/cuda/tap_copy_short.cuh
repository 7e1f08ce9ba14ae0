// Copies parts of numbers of 16 bits into slots of shared memory, asynchronously if they are stored
// as they are multiplied.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/ops/conv2d/cuda/factor_groups.cuh"
#include "thimble/ops/conv2d/cuda/tap_copy_packed.cuh"
#include "thimble/ops/conv2d/cuda/tap_fill.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

template <class T, Weights kLayout, bool kPacked>
class ShortParts {
  using Number = typename T::Number;
  using Groups = ShortGroups<Number>;
  using W = WeightTile<T, kLayout>;

 public:
  static constexpr bool kPackedWeights = kPacked;

  __device__ ShortParts(const TapConvolution& c, const TapArrays& arrays)
      : c_(c),
        arrays_(arrays),
        source_{arrays.source, CopyingOf(arrays.source.type, DTypeOf<Number>(), c.channels)},
        weights_{arrays.weights, kPacked ? Copying::kSingly
                                         : CopyingOf(arrays.weights.type, DTypeOf<Number>(),
                                                     W::kBySource ? c.channels : c.out_channels)} {}

  __device__ void Begin(const PartPlace<T>& place) {
    const bool has_taps = place.grid().num_taps > 0;
    if constexpr (kPacked) {
      if (place.other_weights) packed_copy_.Begin(place, arrays_);
    }
    is_async_ = (source_.is_async() || !has_taps) && (weights_.is_async() || !place.other_weights);
  }

  __device__ void Finish(const PartPlace<T>& place, float* tile, float* weight_tile) {
    const auto numbers = [](float* words) { return reinterpret_cast<Number*>(words); };
    if (place.grid().num_taps > 0) {
      const Groups images = source_.From(place.first_element());
      images.is_async() ? CopySource<true>(place, images, numbers(tile))
                        : CopySource<false>(place, images, numbers(tile));
    }
    if (!place.other_weights) return;
    if constexpr (kPacked) {
      packed_copy_.Finish(place, arrays_, weight_tile, [] {});
    } else {
      CopyWeights(place, numbers(weight_tile));
    }
  }

  __device__ void Arrive(Handover& full) const {
    if (is_async_) {
      full.ArriveAfterCopies();
    } else {
      WaitForCopies();
      full.Arrive();
    }
  }

 private:
  template <bool kAsync>
  __device__ void CopySource(const PartPlace<T>& place, const Groups& images, Number* tile) const {
    constexpr int kLanes = kWordsPerPart / kGroupWords;  // threads that share a pixel
    constexpr int kPixelsAtOnce = T::kCopiers / kLanes;
    static_assert(kPixelsAtOnce % 8 == 0);
    const int lane_channel = Copier<T>() % kLanes * Groups::kNumbers;
    const int channel = place.part.channel + lane_channel;
#pragma unroll(kAsync ? 4 : 1)
    for (int pixel = RowInOtherBanks(Copier<T>() / kLanes); pixel < place.pixels;
         pixel += kPixelsAtOnce) {
      const unsigned offset = place.offsets[pixel];
      images.template Copy<kAsync>(static_cast<int>(offset) + channel,
                                   offset == kOutside ? 0 : c_.channels - channel,
                                   tile + pixel * kPitch * T::kNumbersPerWord + lane_channel);
    }
  }

  // Each thread has some of the groups and of the taps.
  __device__ void CopyWeights(const PartPlace<T>& place, Number* tile) const {
    constexpr int kGroupsAtOnce = W::kGroups < T::kCopiers ? W::kGroups : T::kCopiers;
    constexpr int kTapsAtOnce = T::kCopiers / kGroupsAtOnce;
    static_assert(W::kGroups % kGroupsAtOnce == 0 && T::kCopiers % kGroupsAtOnce == 0);
    const TapGrid& grid = place.grid();
    for (int group = Copier<T>() % kGroupsAtOnce; group < W::kGroups; group += kGroupsAtOnce) {
      const int group_row = group / W::kGroupsInRow;
      const int row = W::kGroupsInRow == 4 ? RowInOtherBanks(group_row) : group_row;
      const int inner = group % W::kGroupsInRow * Groups::kNumbers;
      const int n = place.part.item.result + (W::kBySource ? row : inner);
      const int k = place.part.channel + (W::kBySource ? inner : row);
      const int valid = n >= c_.out_channels || k >= c_.channels ? 0
                        : W::kBySource                           ? c_.channels - k
                                                                 : c_.out_channels - n;
      const int index = n * c_.n_stride + k * c_.k_stride;
      Number* to = tile + row * W::kRowPitch * T::kNumbersPerWord + inner;
      for (int tap = Copier<T>() / kGroupsAtOnce; tap < grid.num_taps; tap += kTapsAtOnce) {
        weights_.Copy(index + grid.taps[tap].weight * c_.t_stride, valid,
                      to + tap * W::kWords * T::kNumbersPerWord);
      }
    }
  }

  const TapConvolution& c_;
  const TapArrays& arrays_;
  Groups source_;
  Groups weights_;
  PackedCopy<T, kLayout> packed_copy_;
  bool is_async_ = false;  // all copies of the part
};

}  // namespace thimble::tap
