#include "thimble/plan/recompute/recompute_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "thimble/base/byte_size.h"
#include "thimble/plan/recompute/apply_schedule.h"
#include "thimble/plan/recompute/candidates.h"
#include "thimble/plan/recompute/verify_rebuilt.h"

namespace thimble {
namespace {

// Applies the strategy to all orders and returns the draft with the fewest live bytes.
Result<PlanDraft> ApplyNamed(const std::vector<PlanDraft>& drafts, const OpRegistry& ops,
                             const PlanOptions& options) {
  std::optional<PlanDraft> best;
  size_t best_bytes = 0;
  for (const PlanDraft& draft : drafts) {
    THIMBLE_ASSIGN_OR_RETURN(const Chain chain, MakeChain(draft, ops, options));
    PlanDraft applied =
        ApplySchedule(draft, chain, MakeNamedSchedule(draft.graph, ops, chain, options.recompute));
    const size_t bytes = LiveArenaBytes(applied, ops, options);
    if (best && bytes >= best_bytes) continue;
    best = std::move(applied);
    best_bytes = bytes;
  }
  return *std::move(best);
}

Result<PlanDraft> ChooseOptimal(const std::vector<PlanDraft>& drafts, const OpRegistry& ops,
                                const PlanOptions& options) {
  Candidates candidates(ops, options);
  THIMBLE_TRY(candidates.Add(drafts));
  const size_t limit_bytes = options.recompute.limit_bytes;
  if (limit_bytes > 0) {
    if (std::optional<PlanDraft> chosen = candidates.LeastWorkWithin(limit_bytes)) {
      return *std::move(chosen);
    }
  }
  if (limit_bytes == 0 && options.enough_bytes > 0) {
    return candidates.AnyWithin(options.enough_bytes);
  }
  PlanDraft smallest = candidates.Smallest();
  if (limit_bytes == 0) return smallest;
  const auto reached = static_cast<int64_t>(PlacedArenaBytes(smallest, ops, options));
  return DoesNotFit(fmt::format(
      "--recompute {}: the smallest arena that recomputing reaches is {} ({} bytes), {} above the "
      "limit; a smaller --batch or --microbatch would help",
      ToString(options.recompute), FormatBytes(reached), reached,
      FormatBytes(reached - static_cast<int64_t>(limit_bytes))));
}

std::string Describe(const Graph& before, const Graph& after) {
  size_t forward = 0;
  for (const Node& node : before.nodes) forward += node.phase == Phase::kForward ? 1 : 0;
  return fmt::format("{} reruns of {} forward nodes", after.nodes.size() - before.nodes.size(),
                     forward);
}

class RecomputePass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {.name = "recompute",
            .exactness = Exactness::kSameBits,
            .what = "drop forward values and recompute them when backward needs them",
            .on_demand = true};
  }

  bool ComparesArenas(const PlanOptions& options) const override {
    return options.recompute.kind == RecomputeKind::kOptimal;
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                          const PlanOptions& options) const override {
    if (options.recompute.kind == RecomputeKind::kNone) return std::string();
    const auto is_backward = [](const Node& node) { return node.phase == Phase::kBackward; };
    if (std::none_of(draft.graph.nodes.begin(), draft.graph.nodes.end(), is_backward)) {
      return std::string();
    }
    const std::vector<PlanDraft> drafts = DraftsToTry(draft, options);
    THIMBLE_ASSIGN_OR_RETURN(PlanDraft chosen, options.recompute.kind == RecomputeKind::kOptimal
                                                   ? ChooseOptimal(drafts, ops, options)
                                                   : ApplyNamed(drafts, ops, options));
    THIMBLE_TRY(VerifyRebuilt(draft.graph, chosen.graph, ops));
    const std::string what =
        fmt::format("{}: {}", ToString(options.recompute), Describe(draft.graph, chosen.graph));
    draft = std::move(chosen);
    return what;
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakeRecomputePass() { return std::make_unique<RecomputePass>(); }

}  // namespace thimble
