#include "thimble/plan/passes/rest.h"

#include <fmt/format.h>

#include "thimble/plan/memory/move_apart.h"

namespace thimble {
namespace {

// Enough to keep a weight gradient, its accumulation and the next input gradient in different
// bytes. More steps gained nothing for WideResNets.
constexpr size_t kRestSteps = 4;

class RestPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {
        .name = "rest",
        .exactness = Exactness::kSameBits,
        .what = "reuse bytes some steps later where there is room, so that kernels need not wait",
        .saves_bytes = false};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& /*ops*/,
                          const PlanOptions& options) const override {
    if (!RunsSideBySide(options.device) || !draft.offsets) return std::string();
    const std::vector<Interval> intervals = IntervalsOf(Buffers(draft));
    const size_t before = MissingRest(intervals, *draft.offsets, kRestSteps);
    draft.offsets = MoveApart(intervals, *std::move(draft.offsets), kArenaAlignment, kRestSteps);
    const size_t after = MissingRest(intervals, *draft.offsets, kRestSteps);
    return fmt::format(
        "bytes are reused {} steps too early in total, {} before (goal: {} steps apart)", after,
        before, kRestSteps);
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakeRestPass() { return std::make_unique<RestPass>(); }

}  // namespace thimble
