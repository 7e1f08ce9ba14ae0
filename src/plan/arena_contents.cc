#include "thimble/plan/arena_contents.h"

#include <algorithm>
#include <iterator>

namespace thimble {

void ArenaContents::Write(ByteRange range, Holding holding) {
  if (range.empty()) return;
  SplitAt(range.begin);
  SplitAt(range.end);
  segments_.erase(segments_.lower_bound(range.begin), segments_.lower_bound(range.end));
  segments_.emplace(range.begin, Segment{range.end, holding});
}

std::optional<ArenaContents::Finding> ArenaContents::FirstOther(ByteRange range,
                                                                ValueId value) const {
  size_t whole_until = range.begin;
  for (auto at = FirstBehind(range.begin); whole_until < range.end; ++at) {
    if (at == segments_.end() || at->first > whole_until) {
      const size_t next = at == segments_.end() ? range.end : at->first;
      return Finding{{whole_until, std::min(next, range.end)}, std::nullopt};
    }
    if (at->second.holding.value != value) {
      return Finding{{whole_until, std::min(at->second.end, range.end)}, at->second.holding};
    }
    whole_until = at->second.end;
  }
  return std::nullopt;
}

std::optional<ArenaContents::Finding> ArenaContents::FirstHeld(ByteRange range) const {
  const auto at = FirstBehind(range.begin);
  if (range.empty() || at == segments_.end() || at->first >= range.end) return std::nullopt;
  return Finding{{std::max(at->first, range.begin), std::min(at->second.end, range.end)},
                 at->second.holding};
}

void ArenaContents::SplitAt(size_t offset) {
  const auto behind = segments_.upper_bound(offset);
  if (behind == segments_.begin()) return;
  const auto at = std::prev(behind);
  if (at->first == offset || at->second.end <= offset) return;
  segments_.emplace(offset, at->second);
  at->second.end = offset;
}

ArenaContents::Segments::const_iterator ArenaContents::FirstBehind(size_t offset) const {
  auto at = segments_.upper_bound(offset);
  if (at == segments_.begin()) return at;
  const auto before = std::prev(at);
  return before->second.end > offset ? before : at;
}

}  // namespace thimble
