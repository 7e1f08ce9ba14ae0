#include "thimble/plan/passes/placement.h"

#include <fmt/format.h>

#include <utility>

namespace thimble {
namespace {

// Placing takes a large part of the time of planning, so what is already known is not searched
// again.
OffsetPlan PlaceBuffers(PlanDraft& draft) {
  const std::vector<Interval> intervals = IntervalsOf(Buffers(draft));
  const std::optional<PlacedIntervals> placed = std::exchange(draft.placed, std::nullopt);
  if (placed && placed->intervals == intervals) return placed->plan;
  return PlaceIntervals(intervals, kArenaAlignment);
}

class PlacementPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {.name = "placement",
            .exactness = Exactness::kSameBits,
            .what = "share memory between buffers that are never needed at the same time",
            .decides = Decides::kOffsets};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& /*ops*/,
                          const PlanOptions& /*options*/) const override {
    OffsetPlan placed = PlaceBuffers(draft);
    draft.offsets = std::move(placed.offsets);
    return fmt::format("placed in {} bytes; {} are alive at the peak", placed.peak_bytes,
                       placed.lower_bound_bytes);
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakePlacementPass() { return std::make_unique<PlacementPass>(); }

}  // namespace thimble
