#include "thimble/plan/passes/placement.h"

#include <fmt/format.h>

namespace thimble {
namespace {

class PlacementPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {.name = "placement",
            .exactness = Exactness::kSameBits,
            .what = "let buffers that never live together share bytes",
            .decides = Decides::kOffsets};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& /*ops*/,
                          const PlanOptions& /*options*/) const override {
    OffsetPlan placed = PlaceIntervals(IntervalsOf(Buffers(draft)), kArenaAlignment);
    draft.offsets = std::move(placed.offsets);
    return fmt::format("{} bytes placed, {} alive at the fullest step", placed.peak_bytes,
                       placed.lower_bound_bytes);
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakePlacementPass() { return std::make_unique<PlacementPass>(); }

}  // namespace thimble
