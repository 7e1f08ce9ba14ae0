// Packing in a given order: each item is placed at the lowest offset, or in the tightest hole, that
// is free for its whole live range. Used by all orders and by the search over orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace thimble {

// An interval prepared for packing: its size is a positive multiple of the alignment; its live
// range is counted in moments, the numbered times at which any interval begins or ends.
struct PackItem {
  size_t size_bytes = 0;
  uint32_t first = 0;
  uint32_t end = 0;

  bool Meets(const PackItem& other) const { return first < other.end && other.first < end; }
};

enum class Fit {
  kLowest,    // the lowest free offset. Some order reaches the optimal peak: that of the offsets in
              // an optimal packing, since no item is then placed higher than there.
  kTightest,  // the smallest hole that is large enough, else on top
};

struct Packing {
  std::vector<size_t> offsets;  // by item
  size_t peak_bytes = 0;
};

// Packs repeatedly; its buffers are kept between calls.
//
// Most items live briefly. Time is divided into stretches, each with a list of the placed items
// that are alive in it: an item that lives in one or few of them is compared with those alone.
class ItemPacker {
 public:
  // `items` must outlive the packer.
  explicit ItemPacker(std::span<const PackItem> items);

  // Packs all items in this order, a permutation of their indices. Returns false, with `packing`
  // incomplete, as soon as the peak exceeds the limit. With either fit every address below the peak
  // is used by some item, so the peak is at most the sum of the sizes. The first `num_known` items
  // of the order are where packing.offsets has them.
  bool Pack(std::span<const uint32_t> order, Fit fit, size_t limit_bytes, Packing& packing,
            size_t num_known = 0);

 private:
  // In one stretch: what lives from its beginning to its end and lies side by side is one entry.
  struct Placed {
    size_t offset = 0;
    size_t end_offset = 0;
    PackItem item;  // within the stretch
  };

  size_t Place(const PackItem& item, Fit fit) const;
  size_t LowestPlace(const PackItem& item) const;
  size_t TightestPlace(const PackItem& item) const;
  void Insert(uint32_t index, size_t offset);
  static void Insert(const Placed& added, std::vector<Placed>& stretch);

  std::span<const PackItem> items_;
  std::vector<std::vector<Placed>> stretches_;  // what lives in each, by offset
  std::vector<uint32_t> placed_;                // all placed items, by offset
  std::vector<size_t> offsets_;                 // by item, of those placed
};

inline constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

}  // namespace thimble
