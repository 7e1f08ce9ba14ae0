#include "thimble/plan/memory/skyline_order.h"

#include <algorithm>
#include <numeric>

namespace thimble {
namespace {

class Skyline {
 public:
  Skyline(std::span<const PackItem> items, ValleyChoice choice) : items_(items) {
    waiting_.resize(items.size());
    std::iota(waiting_.begin(), waiting_.end(), 0);
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](uint32_t a, uint32_t b) {
      const bool longest = choice == ValleyChoice::kLongest;
      return longest ? Longer(items[a], items[b]) : Larger(items[a], items[b]);
    });
    uint32_t end = 0;
    for (const PackItem& item : items) end = std::max(end, item.end);
    heights_.assign(end, 0);
  }

  std::vector<uint32_t> Run() {
    std::vector<uint32_t> order;
    const auto lives = [&](uint32_t index) { return items_[index].first < items_[index].end; };
    const auto idle = std::stable_partition(waiting_.begin(), waiting_.end(), lives);
    const std::vector<uint32_t> last(idle, waiting_.end());
    waiting_.erase(idle, waiting_.end());
    while (!waiting_.empty()) {
      const Valley valley = FindLowestValley();
      const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](uint32_t index) {
        return valley.first <= items_[index].first && items_[index].end <= valley.end;
      });
      if (next == waiting_.end()) {
        Raise(valley.first, valley.end, valley.rim);
        continue;
      }
      const PackItem& item = items_[*next];
      Raise(item.first, item.end, heights_[item.first] + item.size_bytes);
      order.push_back(*next);
      waiting_.erase(next);
    }
    order.insert(order.end(), last.begin(), last.end());
    return order;
  }

 private:
  struct Valley {
    size_t first = 0;
    size_t end = 0;
    size_t rim = 0;  // height of the lower neighbour
  };

  static bool Longer(const PackItem& a, const PackItem& b) {
    if (a.end - a.first != b.end - b.first) return a.end - a.first > b.end - b.first;
    return a.size_bytes > b.size_bytes;
  }
  static bool Larger(const PackItem& a, const PackItem& b) {
    if (a.size_bytes != b.size_bytes) return a.size_bytes > b.size_bytes;
    return a.end - a.first > b.end - b.first;
  }

  Valley FindLowestValley() const {
    const auto lowest = std::min_element(heights_.begin(), heights_.end());
    const auto end = std::find_if(lowest, heights_.end(), [&](size_t h) { return h != *lowest; });
    const size_t left = lowest == heights_.begin() ? kNoLimit : *(lowest - 1);
    const size_t right = end == heights_.end() ? kNoLimit : *end;
    return {static_cast<size_t>(lowest - heights_.begin()),
            static_cast<size_t>(end - heights_.begin()), std::min(left, right)};
  }

  void Raise(size_t first, size_t end, size_t height) {
    std::fill(heights_.begin() + static_cast<ptrdiff_t>(first),
              heights_.begin() + static_cast<ptrdiff_t>(end), height);
  }

  std::span<const PackItem> items_;
  std::vector<uint32_t> waiting_;  // preferred items first
  std::vector<size_t> heights_;    // by moment
};

}  // namespace

std::vector<uint32_t> MakeSkylineOrder(std::span<const PackItem> items, ValleyChoice choice) {
  return Skyline(items, choice).Run();
}

}  // namespace thimble
