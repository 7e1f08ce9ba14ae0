// Packing in a given order: each item goes to the lowest place, or into the tightest hole, that is
// free for the whole of its life. The step that all orders and the search over orders share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace thimble {

// An interval ready for packing: its size is a multiple of the alignment and not 0, its life is
// counted in numbered moments at which anything begins or ends.
struct PackItem {
  size_t size_bytes = 0;
  uint32_t first = 0;
  uint32_t end = 0;

  bool Meets(const PackItem& other) const { return first < other.end && other.first < end; }
};

enum class Fit {
  kLowest,  // the lowest free place. In some order this reaches the smallest peak there is: take
            // the items of a best packing from the lowest offset up, and none comes to lie higher.
  kTightest,  // the smallest hole that is large enough, else on top
};

struct Packing {
  std::vector<size_t> offsets;  // by item
  size_t peak_bytes = 0;
};

// Packs again and again; the room it works in is kept between calls.
class ItemPacker {
 public:
  // `items` must outlive the packer.
  explicit ItemPacker(std::span<const PackItem> items) : items_(items) {}

  // Packs all items in this order, a permutation of their indices. Returns false and leaves
  // `packing` half done as soon as the peak goes above the limit. With either fit the used
  // addresses have no hole that no item ever covers, so the peak is at most the sum of the sizes.
  bool Pack(std::span<const uint32_t> order, Fit fit, size_t limit_bytes, Packing& packing);

 private:
  struct Placed {
    size_t offset = 0;
    size_t end_offset = 0;
    PackItem item;
  };

  size_t LowestPlace(const PackItem& item) const;
  size_t TightestPlace(const PackItem& item) const;
  void Insert(const PackItem& item, size_t offset);

  std::span<const PackItem> items_;
  std::vector<Placed> placed_;  // by offset
};

inline constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

}  // namespace thimble
