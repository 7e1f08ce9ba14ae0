// The half of a TapConvolution that copies: it fills slots of shared memory with the parts of a
// block's items. Floats and numbers of 16 bits are copied differently (tap_copy, tap_copy_short).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/conv2d/cuda/tap_tile.cuh"

namespace thimble::tap {

// Records which weights each slot holds. Slots are used in turn: the last entry is the oldest.
class SlotWeights {
 public:
  // Returns whether the slot for a part does not hold the part's weights yet, and records that it
  // now does.
  __device__ bool Change(int weights, int slots) {
    bool same = false;
#pragma unroll
    for (int i = kMaxSlots - 1; i >= 0; --i) {
      same = i == slots - 1 ? weights == present_[i] : same;
      present_[i] = i > 0 ? present_[i - 1] : weights;
    }
    return !same;
  }
  // Returns how many parts ago, less than `slots`, the same weights were needed; 0 if they were
  // not.
  __device__ int PartsAgo(int weights, int slots) const {
    int ago = 0;
#pragma unroll
    for (int i = 0; i < kMaxSlots - 1; ++i) {
      ago = i + 1 < slots && weights == present_[i] ? i + 1 : ago;
    }
    return ago;
  }

 private:
  int present_[kMaxSlots] = {-1, -1, -1, -1};
};

// Writes to the table `offsets` where the pixels of an item's tile are: elements from the item's
// first image on, or kOutside. It serves all parts of the item.
inline constexpr unsigned kOutside = ~0U;

template <class T>
__device__ void LocatePixels(const TapConvolution& c, const TileArea& area, const Item& item,
                             unsigned* offsets) {
  const TapGrid& grid = c.grids[item.grid];
  const int scale = c.step * c.load_step;
  const unsigned columns = static_cast<unsigned>(area.columns);
  const unsigned pixels = static_cast<unsigned>(area.pixels());
  SyncCopiers<T>();  // no thread reads the table any more
  for (unsigned i = Copier<T>(); i < T::kImages * pixels; i += T::kCopiers) {
    const int image = static_cast<int>(i / pixels);
    const unsigned pixel = i % pixels;
    const int row =
        grid.first_row + item.row * scale + static_cast<int>(pixel / columns) * c.load_step;
    const int column =
        grid.first_column + item.column * scale + static_cast<int>(pixel % columns) * c.load_step;
    // As unsigned, a negative number is large.
    const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(c.height) &&
                        static_cast<unsigned>(column) < static_cast<unsigned>(c.width) &&
                        item.image + image < c.batch;
    const int offset = ((image * c.height + row) * c.width + column) * c.channels;
    offsets[i] = inside ? static_cast<unsigned>(offset) : kOutside;
  }
  SyncCopiers<T>();
}

// A part and what its copy needs to know.
template <class T>
struct PartPlace {
  const TapConvolution& c;
  const Part<T>& part;
  int pixels;               // of the tile
  const unsigned* offsets;  // of its pixels
  bool other_weights;       // whether the slot does not hold the part's weights yet
  int same_weights;         // words to another slot that holds them, if they are packed; 0: none

  __device__ const TapGrid& grid() const { return c.grids[part.item.grid]; }
  // The first element of the item's first image.
  __device__ int64_t first_element() const {
    return part.item.image * (static_cast<int64_t>(c.height) * c.width * c.channels);
  }
};

// Fills slots with the block's parts. Parts is FloatParts or ShortParts: Begin may load what needs
// no empty slot, Finish writes to the slot, Arrive says when it is full.
template <class T, class Parts>
__device__ void FillSlots(const TapConvolution& c, int slots, Parts parts, float* shared,
                          Handovers& handovers) {
  const Items<T> items(c);
  const TileArea area = AreaOf<T>(c);
  const int pixels = T::kImages * area.pixels();
  const int slot_words = SlotWords<T>(c);
  unsigned* offsets = reinterpret_cast<unsigned*>(shared + slots * slot_words);
  SlotWeights slot_weights;
  Part<T> part(c, items);
  int count = 0;
  for (bool more = true; more; more = part.Advance(c, items, slots), ++count) {
    const bool has_taps = c.grids[part.item.grid].num_taps > 0;
    if (part.channel == 0 && has_taps) LocatePixels<T>(c, area, part.item, offsets);
    int same_weights = 0;
    if constexpr (Parts::kPackedWeights) {
      const int ago = slot_weights.PartsAgo(part.Weights(c), slots);
      same_weights = (ago > part.slot ? slots - ago : -ago) * slot_words;
    }
    const PartPlace<T> place{
        c, part, pixels, offsets, slot_weights.Change(part.Weights(c), slots), same_weights};
    // So far only the table was written.
    if (count == 0) WaitForKernelsBefore(NextKernels::kLater);
    parts.Begin(place);
    if (count >= slots) handovers.empty[part.slot].Wait(!part.odd);
    float* tile = shared + part.slot * slot_words;
    parts.Finish(place, tile, tile + pixels * kPitch);
    parts.Arrive(handovers.full[part.slot]);
  }
  LetNextKernelsBegin();
}

}  // namespace thimble::tap
