#include "thimble/plan/memory/improve_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "thimble/base/philox.h"

namespace thimble {
namespace {

// One packing of n items examines up to n² / 2 pairs. This many pairs take about 20 ms; 400 items
// get about 200 packings.
constexpr size_t kMaxPairs = 16'000'000;
// Few items need few packings: six have only 720 orders.
constexpr size_t kMaxPackings = 4000;
// Above 1500 items the work grows with their square again: about 0.2 s for 2000.
constexpr size_t kMinPackings = 60;

size_t CountPackings(size_t num_items) {
  const size_t pairs = std::max<size_t>(1, num_items * num_items / 2);
  return std::clamp(kMaxPairs / pairs, kMinPackings, kMaxPackings);
}

class Search {
 public:
  Search(std::span<const PackItem> items, Packing start)
      : items_(items), packer_(items), best_(std::move(start)) {
    order_.resize(items.size());
    trial_.offsets.resize(items.size());
    std::iota(order_.begin(), order_.end(), 0);
    OrderByOffset();
  }

  Packing Run(size_t goal_bytes) {
    const size_t num_packings = CountPackings(items_.size());
    for (try_ = 0; try_ < num_packings && best_.peak_bytes > goal_bytes; ++try_) Step();
    return std::move(best_);
  }

 private:
  // Keeps a change that is not worse: most changes leave the peak equal, and without them the
  // search soon gets stuck. Accepting worse packings was tried; it gained less and took longer.
  void Step() {
    saved_order_ = order_;
    const size_t num_unchanged = ChangeOrder();
    const size_t num_known = is_lowest_ ? num_unchanged : 0;
    for (size_t i = 0; i < num_known; ++i) trial_.offsets[order_[i]] = best_.offsets[order_[i]];
    if (!packer_.Pack(order_, Fit::kLowest, best_.peak_bytes, trial_, num_known)) {
      order_.swap(saved_order_);
      return;
    }
    std::swap(best_, trial_);
    is_lowest_ = true;
    OrderByOffset();
  }

  // Packing in the order of the offsets can only lower items, and later changes start from a sorted
  // order. It lowers none if each already has the lowest place: what keeps it from a lower one is
  // below it, so it comes earlier in this order, too.
  void OrderByOffset() {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return best_.offsets[a] < best_.offsets[b]; });
  }

  // Packs an item at the peak, or one that is alive at the same time, earlier. Half of the changes
  // move one item, a quarter two, and so on: mostly small changes, sometimes a large one to leave a
  // local minimum. Returns how many items at the beginning of the order stay as they are.
  size_t ChangeOrder() {
    const auto number = static_cast<uint32_t>(try_);
    const int num_moves = 1 + std::countr_zero(number + 1);
    size_t num_unchanged = order_.size();
    for (int move = 0; move < num_moves; ++move) {
      const std::array<uint32_t, 4> words =
          Philox4x32({}, {number, static_cast<uint32_t>(move), 0, 0});
      const uint32_t item = ChooseItem(words[0] % 4, words[1], words[2]);
      num_unchanged = std::min(num_unchanged, MoveEarlier(item, words[3]));
    }
    return num_unchanged;
  }

  // An item at the peak, one that is alive at the same time, or any.
  uint32_t ChooseItem(uint32_t kind, uint32_t word, uint32_t companion_word) {
    if (kind == 0) return UniformBelow(word, static_cast<uint32_t>(items_.size()));
    const uint32_t top = ItemAtPeak(word);
    return kind == 1 ? top : Companion(top, companion_word);
  }

  // Returns the item's new position.
  size_t MoveEarlier(uint32_t item, uint32_t word) {
    const auto from = std::find(order_.begin(), order_.end(), item);
    const auto position = static_cast<uint32_t>(from - order_.begin());
    const uint32_t to = UniformBelow(word, position + 1);
    std::rotate(order_.begin() + to, from, from + 1);
    return to;
  }

  uint32_t ItemAtPeak(uint32_t word) {
    candidates_.clear();
    for (uint32_t i = 0; i < items_.size(); ++i) {
      if (best_.offsets[i] + items_[i].size_bytes == best_.peak_bytes) candidates_.push_back(i);
    }
    return Choose(word);
  }

  uint32_t Companion(uint32_t item, uint32_t word) {
    candidates_.clear();
    for (uint32_t i = 0; i < items_.size(); ++i) {
      if (items_[i].Meets(items_[item])) candidates_.push_back(i);
    }
    return candidates_.empty() ? item : Choose(word);
  }

  uint32_t Choose(uint32_t word) const {
    return candidates_[UniformBelow(word, static_cast<uint32_t>(candidates_.size()))];
  }

  std::span<const PackItem> items_;
  ItemPacker packer_;
  Packing best_;
  Packing trial_;
  std::vector<uint32_t> order_;  // of best_, by offset
  bool is_lowest_ = false;       // whether packing in this order gives best_ again
  std::vector<uint32_t> saved_order_;
  std::vector<uint32_t> candidates_;
  size_t try_ = 0;
};

}  // namespace

Packing ImproveOrder(std::span<const PackItem> items, Packing start, size_t goal_bytes) {
  return Search(items, std::move(start)).Run(goal_bytes);
}

}  // namespace thimble
