#include "thimble/plan/verify_plan_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace thimble {
namespace {

template <class... Args>
Error Wrong(fmt::format_string<Args...> format, Args&&... args) {
  return Failed("plan: " + fmt::format(format, std::forward<Args>(args)...));
}

class LayoutVerifier {
 public:
  explicit LayoutVerifier(const Plan& plan) : plan_(plan), graph_(plan.graph) {}

  Result<void> Run() {
    THIMBLE_TRY(CheckArena());
    THIMBLE_TRY(CheckResidents());
    for (const Placement& placement : plan_.placements) THIMBLE_TRY(CheckPlacement(placement));
    for (size_t i = 0; i < graph_.values.size(); ++i) THIMBLE_TRY(CheckValue(ValueId(i)));
    THIMBLE_TRY(CheckBufferSizes());
    THIMBLE_TRY(CheckPersistentValues());
    THIMBLE_TRY(CheckCarries());
    return CheckPlacementsApart();
  }

 private:
  Result<void> CheckArena() const {
    if (plan_.arena_bytes % kArenaAlignment != 0) {
      return Wrong("arena of {} bytes is not a multiple of {}", plan_.arena_bytes, kArenaAlignment);
    }
    if (plan_.residents.end_bytes > plan_.arena_bytes) {
      return Wrong("residents end at {}, beyond the arena of {} bytes", plan_.residents.end_bytes,
                   plan_.arena_bytes);
    }
    if (plan_.limits.threads < 1) return Wrong("{} threads", plan_.limits.threads);
    if (plan_.values.size() != graph_.values.size()) {
      return Wrong("places for {} values, the graph has {}", plan_.values.size(),
                   graph_.values.size());
    }
    return {};
  }

  // Aligned, and ending at or below `limit_bytes`.
  static Result<void> CheckExtent(std::string_view kind, const std::string& name, size_t offset,
                                  size_t size_bytes, size_t limit_bytes) {
    if (offset % kArenaAlignment != 0) {
      return Wrong("{} '{}' at offset {} is not aligned to {}", kind, name, offset,
                   kArenaAlignment);
    }
    if (offset > limit_bytes || size_bytes > limit_bytes - offset) {
      return Wrong("{} '{}' of {} bytes at offset {} ends beyond {}", kind, name, size_bytes,
                   offset, limit_bytes);
    }
    return {};
  }

  Result<void> CheckResidents() {
    std::map<size_t, const Resident*> by_offset;
    for (const Resident& resident : plan_.residents.residents) {
      THIMBLE_TRY(CheckExtent("resident", resident.name, resident.offset, resident.size_bytes,
                              plan_.residents.end_bytes));
      if (!residents_.emplace(resident.name, &resident).second) {
        return Wrong("two residents are named '{}'", resident.name);
      }
      if (resident.size_bytes == 0) continue;
      const auto [at, is_new] = by_offset.emplace(resident.offset, &resident);
      if (!is_new) {
        return Wrong("residents '{}' and '{}' both begin at {}", at->second->name, resident.name,
                     resident.offset);
      }
    }
    const Resident* before = nullptr;
    for (const auto& [offset, resident] : by_offset) {
      if (before != nullptr && before->offset + before->size_bytes > offset) {
        return Wrong("resident '{}' at {} overlaps '{}', which ends at {}", resident->name, offset,
                     before->name, before->offset + before->size_bytes);
      }
      before = resident;
    }
    return {};
  }

  Result<void> CheckPlacement(const Placement& placement) const {
    THIMBLE_TRY(CheckExtent("buffer", placement.name, placement.offset, placement.size_bytes,
                            plan_.arena_bytes));
    if (!placement.resident && placement.size_bytes > 0 &&
        placement.offset < plan_.residents.end_bytes) {
      return Wrong("buffer '{}' at offset {} is inside the residents, which end at {}",
                   placement.name, placement.offset, plan_.residents.end_bytes);
    }
    if (placement.live.first > placement.live.end ||
        placement.live.end > std::max<size_t>(1, plan_.steps.size())) {
      return Wrong("buffer '{}' has live range [{}, {}) in a plan of {} steps", placement.name,
                   placement.live.first, placement.live.end, plan_.steps.size());
    }
    return {};
  }

  Result<void> CheckValue(ValueId id) const {
    const Value& value = graph_.value(id);
    const ValuePlace& place = plan_.values[id.index()];
    if (!place.buffer.valid() || place.buffer.index() >= plan_.placements.size()) {
      return Wrong("value '{}' has no buffer", value.name);
    }
    const Placement& buffer = plan_.placement(place.buffer);
    if (value.size_bytes() > buffer.size_bytes) {
      return Wrong("value '{}' has {} bytes, its buffer '{}' only {}", value.name,
                   value.size_bytes(), buffer.name, buffer.size_bytes);
    }
    if (place.live.first > place.live.end || place.live.first < buffer.live.first ||
        place.live.end > buffer.live.end) {
      return Wrong("value '{}' has live range [{}, {}), its buffer '{}' only [{}, {})", value.name,
                   place.live.first, place.live.end, buffer.name, buffer.live.first,
                   buffer.live.end);
    }
    if (value.is_packed()) {
      if (place.buffer == plan_.values[value.packed.pool.index()].buffer) return {};
      return Wrong("value '{}' is not in the buffer of its pool '{}'", value.name,
                   graph_.value(value.packed.pool).name);
    }
    if (buffer.resident != IsPersistent(value.role)) {
      return Wrong("value '{}' has role {}, its buffer '{}' is {}resident", value.name,
                   Name(value.role), buffer.name, buffer.resident ? "" : "not ");
    }
    return {};
  }

  // A buffer of values is as large as its largest one. Scratch is checked when its step is
  // simulated.
  Result<void> CheckBufferSizes() const {
    std::map<BufferId, size_t> largest;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      size_t& size_bytes = largest[plan_.values[i].buffer];
      // Whole words: byte tensors of odd sizes are padded.
      const size_t words = (graph_.values[i].size_bytes() + kArenaWordBytes - 1) / kArenaWordBytes;
      size_bytes = std::max(size_bytes, words * kArenaWordBytes);
    }
    for (const auto& [id, size_bytes] : largest) {
      const Placement& buffer = plan_.placement(id);
      if (buffer.size_bytes != size_bytes) {
        return Wrong("buffer '{}' has {} bytes, its largest value {}", buffer.name,
                     buffer.size_bytes, size_bytes);
      }
    }
    return {};
  }

  Result<void> CheckPersistentValues() const {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!IsPersistent(value.role) || value.producer.valid() || value.is_packed()) continue;
      const auto resident = residents_.find(value.name);
      if (resident == residents_.end()) {
        return Wrong("{} '{}' is not in the resident layout", Name(value.role), value.name);
      }
      const Placement& buffer = plan_.placement(plan_.values[i].buffer);
      if (buffer.offset != resident->second->offset ||
          resident->second->size_bytes - value.size_bytes() >= kArenaWordBytes) {
        return Wrong("{} '{}' is at {} with {} bytes, but in the resident layout at {} with {}",
                     Name(value.role), value.name, buffer.offset, value.size_bytes(),
                     resident->second->offset, resident->second->size_bytes);
      }
    }
    return {};
  }

  Result<void> CheckCarries() const {
    for (const Carry& carry : graph_.carries) {
      const BufferId from = plan_.values[carry.from.index()].buffer;
      const BufferId to = plan_.values[carry.to.index()].buffer;
      if (from != to) {
        return Wrong("'{}' at {} is carried from '{}' at {}: not the same buffer",
                     graph_.value(carry.to).name, plan_.placement(to).offset,
                     graph_.value(carry.from).name, plan_.placement(from).offset);
      }
    }
    return {};
  }

  Result<void> CheckPlacementsApart() const {
    std::vector<const Placement*> buffers;
    for (const Placement& placement : plan_.placements) {
      if (!placement.resident && placement.size_bytes > 0) buffers.push_back(&placement);
    }
    std::stable_sort(buffers.begin(), buffers.end(),
                     [](const Placement* a, const Placement* b) { return a->offset < b->offset; });
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Placement& low = *buffers[i];
      for (size_t j = i + 1; j < buffers.size(); ++j) {
        const Placement& high = *buffers[j];
        if (high.offset >= low.offset + low.size_bytes) break;
        if (low.live.first >= high.live.end || high.live.first >= low.live.end) continue;
        return Wrong(
            "buffers '{}' [{}, {}) and '{}' [{}, {}) overlap and are both alive at step {}",
            low.name, low.offset, low.offset + low.size_bytes, high.name, high.offset,
            high.offset + high.size_bytes, std::max(low.live.first, high.live.first));
      }
    }
    return {};
  }

  const Plan& plan_;
  const Graph& graph_;
  std::map<std::string_view, const Resident*> residents_;
};

}  // namespace

Result<void> VerifyPlanLayout(const Plan& plan) { return LayoutVerifier(plan).Run(); }

}  // namespace thimble
