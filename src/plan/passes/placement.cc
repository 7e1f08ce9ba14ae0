#include "thimble/plan/passes/placement.h"

#include <fmt/format.h>

namespace thimble {
namespace {

class PlacementPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {"placement", Exactness::kSameBits, "let buffers that never live together share bytes"};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& /*ops*/,
                          const PlanOptions& /*options*/) const override {
    std::vector<Interval> intervals;
    for (const DraftBuffer& buffer : Buffers(draft)) {
      intervals.push_back({buffer.resident ? 0 : buffer.size_bytes, buffer.live});
    }
    OffsetPlan placed = PlaceIntervals(intervals, kArenaAlignment);
    draft.offsets = std::move(placed.offsets);
    return fmt::format("{} bytes placed, {} alive at the fullest step", placed.peak_bytes,
                       placed.lower_bound_bytes);
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakePlacementPass() { return std::make_unique<PlacementPass>(); }

}  // namespace thimble
