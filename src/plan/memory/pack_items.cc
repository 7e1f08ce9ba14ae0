#include "thimble/plan/memory/pack_items.h"

#include <algorithm>

namespace thimble {

bool ItemPacker::Pack(std::span<const uint32_t> order, Fit fit, size_t limit_bytes,
                      Packing& packing) {
  placed_.clear();
  packing.offsets.resize(items_.size());
  packing.peak_bytes = 0;
  for (uint32_t index : order) {
    const PackItem& item = items_[index];
    const size_t offset = fit == Fit::kLowest ? LowestPlace(item) : TightestPlace(item);
    packing.offsets[index] = offset;
    packing.peak_bytes = std::max(packing.peak_bytes, offset + item.size_bytes);
    if (packing.peak_bytes > limit_bytes) return false;
    Insert(item, offset);
  }
  return true;
}

size_t ItemPacker::LowestPlace(const PackItem& item) const {
  size_t offset = 0;
  for (const Placed& other : placed_) {
    if (other.offset >= offset + item.size_bytes) break;
    // If they meet, both differences are negative. Without a branch, which would be predicted wrong
    // too often: this loop takes a large part of the time of planning.
    const int64_t since_end = static_cast<int64_t>(other.item.first) - item.end;
    const int64_t until_first = static_cast<int64_t>(item.first) - other.item.end;
    const auto mask = static_cast<size_t>((since_end & until_first) >> 63);
    offset = std::max(offset, other.end_offset & mask);
  }
  return offset;
}

size_t ItemPacker::TightestPlace(const PackItem& item) const {
  size_t free_from = 0;
  size_t best_offset = 0;
  size_t best_hole = kNoLimit;
  for (const Placed& other : placed_) {
    if (!other.item.Meets(item)) continue;
    if (other.offset >= free_from + item.size_bytes && other.offset - free_from < best_hole) {
      best_hole = other.offset - free_from;
      best_offset = free_from;
    }
    free_from = std::max(free_from, other.end_offset);
  }
  return best_hole == kNoLimit ? free_from : best_offset;
}

void ItemPacker::Insert(const PackItem& item, size_t offset) {
  const Placed placed{offset, offset + item.size_bytes, item};
  if (placed_.empty() || placed_.back().offset <= offset) {
    placed_.push_back(placed);
    return;
  }
  const auto place =
      std::upper_bound(placed_.begin(), placed_.end(), offset,
                       [](size_t key, const Placed& other) { return key < other.offset; });
  placed_.insert(place, placed);
}

}  // namespace thimble
