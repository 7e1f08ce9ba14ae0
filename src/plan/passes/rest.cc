#include "thimble/plan/passes/rest.h"

#include <fmt/format.h>

#include "thimble/plan/memory/move_apart.h"

namespace thimble {
namespace {

// A weight gradient, its way into the accumulator and the next input gradient then lie in places of
// their own. More rest was worth nothing for WideResNets.
constexpr size_t kRestSteps = 4;

class RestPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {.name = "rest",
            .exactness = Exactness::kSameBits,
            .what = "leave bytes alone for some steps after their use, where there is room",
            .saves_bytes = false};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& /*ops*/,
                          const PlanOptions& options) const override {
    if (!RunsSideBySide(options.device) || !draft.offsets) return std::string();
    const std::vector<Interval> intervals = IntervalsOf(Buffers(draft));
    const size_t before = MissingRest(intervals, *draft.offsets, kRestSteps);
    draft.offsets = MoveApart(intervals, *std::move(draft.offsets), kArenaAlignment, kRestSteps);
    const size_t after = MissingRest(intervals, *draft.offsets, kRestSteps);
    return fmt::format("of {} steps that bytes lack to rest for {}, {} are left", before,
                       kRestSteps, after);
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakeRestPass() { return std::make_unique<RestPass>(); }

}  // namespace thimble
