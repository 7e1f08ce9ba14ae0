#include "thimble/plan/memory/pack_items.h"

#include <algorithm>

namespace thimble {

namespace {

// Moments per stretch. Items that live briefly do so for a few moments; in longer stretches they
// are compared with more others, in shorter ones those that live long are listed more often.
constexpr uint32_t kMoments = 32;

uint32_t FirstStretch(const PackItem& item) { return item.first / kMoments; }
uint32_t EndStretch(const PackItem& item) { return (item.end - 1) / kMoments + 1; }

// An item in more stretches than this is compared with all placed ones: going through the lists one
// by one, until none raises it any more, would take longer.
constexpr uint32_t kFewStretches = 100;

// The end of `other` if both are alive at some moment, otherwise 0. Without a branch, which would
// be predicted wrong too often: this takes a large part of the time of planning.
size_t EndIfMet(const PackItem& item, const PackItem& other, size_t other_end_offset) {
  // If they meet, both differences are negative.
  const int64_t since_end = static_cast<int64_t>(other.first) - item.end;
  const int64_t until_first = static_cast<int64_t>(item.first) - other.end;
  return other_end_offset & static_cast<size_t>((since_end & until_first) >> 63);
}

// The tightest hole among items that are added by offset.
class TightestHole {
 public:
  explicit TightestHole(size_t size_bytes) : size_bytes_(size_bytes) {}

  void Add(size_t offset, size_t end_offset) {
    if (offset >= free_from_ + size_bytes_ && offset - free_from_ < hole_bytes_) {
      hole_bytes_ = offset - free_from_;
      hole_offset_ = free_from_;
    }
    free_from_ = std::max(free_from_, end_offset);
  }
  size_t Offset() const { return hole_bytes_ == kNoLimit ? free_from_ : hole_offset_; }

 private:
  size_t size_bytes_;
  size_t free_from_ = 0;
  size_t hole_offset_ = 0;
  size_t hole_bytes_ = kNoLimit;
};

}  // namespace

ItemPacker::ItemPacker(std::span<const PackItem> items) : items_(items) {
  uint32_t stretches = 0;
  for (const PackItem& item : items) stretches = std::max(stretches, EndStretch(item));
  stretches_.resize(stretches);
}

bool ItemPacker::Pack(std::span<const uint32_t> order, Fit fit, size_t limit_bytes,
                      Packing& packing, size_t num_known) {
  for (std::vector<Placed>& stretch : stretches_) stretch.clear();
  placed_.clear();
  packing.offsets.resize(items_.size());
  packing.peak_bytes = 0;
  offsets_.resize(items_.size());
  for (size_t position = 0; position < order.size(); ++position) {
    const uint32_t index = order[position];
    const PackItem& item = items_[index];
    const size_t offset = position < num_known ? packing.offsets[index] : Place(item, fit);
    packing.offsets[index] = offset;
    packing.peak_bytes = std::max(packing.peak_bytes, offset + item.size_bytes);
    if (packing.peak_bytes > limit_bytes) return false;
    Insert(index, offset);
  }
  return true;
}

size_t ItemPacker::Place(const PackItem& item, Fit fit) const {
  return fit == Fit::kLowest ? LowestPlace(item) : TightestPlace(item);
}

size_t ItemPacker::LowestPlace(const PackItem& item) const {
  size_t offset = 0;
  if (EndStretch(item) - FirstStretch(item) > kFewStretches) {
    for (const uint32_t other : placed_) {
      if (offsets_[other] >= offset + item.size_bytes) break;
      const size_t end_offset = offsets_[other] + items_[other].size_bytes;
      offset = std::max(offset, EndIfMet(item, items_[other], end_offset));
    }
    return offset;
  }
  // An item that one list raises may then meet others in the lists before.
  for (size_t before = kNoLimit; before != offset;) {
    before = offset;
    for (uint32_t stretch = FirstStretch(item); stretch < EndStretch(item); ++stretch) {
      for (const Placed& other : stretches_[stretch]) {
        if (other.offset >= offset + item.size_bytes) break;
        // Those that end below leave the offset as it is.
        offset = std::max(offset, EndIfMet(item, other.item, other.end_offset));
      }
    }
    if (EndStretch(item) - FirstStretch(item) == 1) break;
  }
  return offset;
}

size_t ItemPacker::TightestPlace(const PackItem& item) const {
  TightestHole hole(item.size_bytes);
  if (EndStretch(item) - FirstStretch(item) == 1) {
    for (const Placed& other : stretches_[FirstStretch(item)]) {
      if (other.item.Meets(item)) hole.Add(other.offset, other.end_offset);
    }
  } else {
    for (const uint32_t other : placed_) {
      if (!items_[other].Meets(item)) continue;
      hole.Add(offsets_[other], offsets_[other] + items_[other].size_bytes);
    }
  }
  return hole.Offset();
}

void ItemPacker::Insert(const Placed& added, std::vector<Placed>& stretch) {
  const auto is_below = [](size_t key, const Placed& other) { return key < other.offset; };
  const auto fills = [](const Placed& placed) {
    return placed.item.end - placed.item.first == kMoments;
  };
  const auto next = std::upper_bound(stretch.begin(), stretch.end(), added.offset, is_below);
  if (fills(added) && next != stretch.begin()) {
    Placed& before = *std::prev(next);
    if (fills(before) && before.end_offset == added.offset) {
      before.end_offset = added.end_offset;
      return;
    }
  }
  stretch.insert(next, added);
}

void ItemPacker::Insert(uint32_t index, size_t offset) {
  const PackItem& item = items_[index];
  offsets_[index] = offset;
  for (uint32_t stretch = FirstStretch(item); stretch < EndStretch(item); ++stretch) {
    const uint32_t first = stretch * kMoments;
    const PackItem here{item.size_bytes, std::max(item.first, first),
                        std::min(item.end, first + kMoments)};
    Insert({offset, offset + item.size_bytes, here}, stretches_[stretch]);
  }
  const auto place =
      std::upper_bound(placed_.begin(), placed_.end(), offset,
                       [this](size_t key, uint32_t other) { return key < offsets_[other]; });
  placed_.insert(place, index);
}

}  // namespace thimble
