#include "thimble/plan/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "thimble/base/byte_size.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/passes/choose_kernels.h"
#include "thimble/plan/passes/in_place.h"
#include "thimble/plan/passes/order.h"
#include "thimble/plan/passes/placement.h"
#include "thimble/plan/passes/recompute.h"
#include "thimble/plan/passes/rest.h"
#include "thimble/plan/verify_plan.h"

namespace thimble {

std::vector<std::unique_ptr<PlanPass>> PlanPasses() {
  std::vector<std::unique_ptr<PlanPass>> passes;
  passes.push_back(MakeChooseKernelsPass());
  passes.push_back(MakeOrderPass());
  passes.push_back(MakeRecomputePass());
  passes.push_back(MakeInPlacePass());
  passes.push_back(MakePlacementPass());
  passes.push_back(MakeRestPass());
  return passes;
}

std::string_view Name(Exactness exactness) {
  switch (exactness) {
    case Exactness::kSameBits:
      return "same-bits";
    case Exactness::kEqual:
      return "equal";
    case Exactness::kLossy:
      return "lossy";
  }
  return "?";
}

namespace {

// The kernel pass is no technique: without it there is no plan.
constexpr std::string_view kRequiredPass = "kernels";

PlanDraft StartDraft(const Graph& graph, const ResidentLayout& residents) {
  PlanDraft draft;
  draft.graph = graph;
  for (size_t index = 0; index < graph.nodes.size(); ++index) draft.order.emplace_back(index);
  std::stable_sort(draft.order.begin(), draft.order.end(),
                   [&](NodeId a, NodeId b) { return graph.node(a).phase < graph.node(b).phase; });
  draft.kernels.resize(graph.nodes.size());
  draft.storage = SeparateStorage(graph);
  draft.residents = residents;
  return draft;
}

std::vector<size_t> OffsetsOf(const PlanDraft& draft, const std::vector<DraftBuffer>& buffers) {
  if (draft.offsets) return *draft.offsets;
  std::vector<Interval> intervals;
  for (const DraftBuffer& buffer : buffers) {
    intervals.push_back({buffer.resident ? 0 : buffer.size_bytes, buffer.live});
  }
  return PlaceWithoutSharing(intervals, kArenaAlignment).offsets;
}

// The end of the highest buffer above the residents: the peak a draft stands for right now.
size_t DraftBytes(const PlanDraft& draft) {
  const std::vector<DraftBuffer> buffers = Buffers(draft);
  const std::vector<size_t> offsets = OffsetsOf(draft, buffers);
  size_t end = 0;
  for (size_t index = 0; index < buffers.size(); ++index) {
    if (!buffers[index].resident) end = std::max(end, offsets[index] + buffers[index].size_bytes);
  }
  return end;
}

Result<Plan> Assemble(PlanDraft draft, const PlanOptions& options) {
  const std::vector<DraftBuffer> buffers = Buffers(draft);
  const std::vector<size_t> offsets = OffsetsOf(draft, buffers);
  const std::vector<LiveRange> live = ValueLiveRanges(draft);
  Plan plan;
  plan.device = options.device;
  plan.limits = options.limits;
  plan.values.resize(draft.graph.values.size());
  for (NodeId node : draft.order) {
    plan.steps.push_back({node, draft.kernels[node.index()].kernel, {}});
  }
  size_t end = draft.residents.end_bytes;
  for (size_t index = 0; index < buffers.size(); ++index) {
    const DraftBuffer& buffer = buffers[index];
    Placement placement{buffer.name, buffer.size_bytes, draft.residents.end_bytes + offsets[index],
                        buffer.live, buffer.resident};
    if (buffer.resident) {
      const Resident* resident = draft.residents.Find(buffer.name);
      THIMBLE_CHECK(resident != nullptr, "'{}' has no resident place", buffer.name);
      placement.offset = resident->offset;
    }
    end = std::max(end, placement.offset + placement.size_bytes);
    for (ValueId value : buffer.values)
      plan.values[value.index()] = {BufferId(index), live[value.index()]};
    if (buffer.scratch_step) plan.steps[*buffer.scratch_step].scratch = BufferId(index);
    plan.placements.push_back(std::move(placement));
  }
  plan.arena_bytes = RoundUp(end, kArenaAlignment);
  plan.lower_bound_bytes = draft.residents.end_bytes + LivePeakBytes(draft);
  plan.residents = std::move(draft.residents);
  plan.decisions = std::move(draft.decisions);
  plan.graph = std::move(draft.graph);
  return plan;
}

}  // namespace

std::vector<PassInfo> OptionalPasses() {
  std::vector<PassInfo> passes;
  for (const auto& pass : PlanPasses()) {
    const PassInfo info = pass->Info();
    if (info.name != kRequiredPass && !info.on_demand) passes.push_back(info);
  }
  return passes;
}

Result<void> CheckSkippedPasses(const PlanOptions& options) {
  std::set<std::string_view> names;
  for (const PassInfo& pass : OptionalPasses()) names.insert(pass.name);
  for (const std::string& name : options.skipped_passes) {
    if (names.contains(name)) continue;
    return BadInput(
        fmt::format("no pass '{}' to leave out; there are {}", name, fmt::join(names, ", ")));
  }
  return {};
}

namespace {

Result<Plan> RunPasses(const Graph& graph, const OpRegistry& ops, const ResidentLayout& residents,
                       const PlanOptions& options) {
  PlanDraft draft = StartDraft(graph, residents);
  for (const auto& pass : PlanPasses()) {
    const std::string name(pass->Info().name);
    if (options.skipped_passes.contains(name)) continue;
    // What a pass is worth shows in the bytes alive; only placement turns those into addresses.
    const bool places = name == "placement";
    const size_t before = places ? DraftBytes(draft) : LivePeakBytes(draft);
    const int64_t flops_before = CostOf(draft.graph, ops).step_flops;
    THIMBLE_ASSIGN_OR_RETURN(std::string what, pass->Run(draft, ops, options));
    if (what.empty()) continue;  // nothing out of the ordinary
    const size_t after = places ? DraftBytes(draft) : LivePeakBytes(draft);
    draft.decisions.push_back({name, what,
                               static_cast<int64_t>(before) - static_cast<int64_t>(after),
                               CostOf(draft.graph, ops).step_flops - flops_before});
  }
  return Assemble(std::move(draft), options);
}

}  // namespace

Result<Plan> MakePlan(const Graph& graph, const OpRegistry& ops, const ResidentLayout& residents,
                      const PlanOptions& options) {
  THIMBLE_TRY(CheckSkippedPasses(options));
  THIMBLE_TRY(VerifyGraph(graph, ops));
  THIMBLE_ASSIGN_OR_RETURN(Plan plan, RunPasses(graph, ops, residents, options));
  // A buffer of values computed in place cannot lie in two places, so fewer bytes alive may be
  // placed a little worse. Which it is shows only at the end. (Optimal recompute has placed all it
  // could choose from.)
  const bool chosen_as_placed = options.recompute.kind == RecomputeKind::kOptimal;
  if (!options.skipped_passes.contains("in-place") && !chosen_as_placed) {
    PlanOptions apart = options;
    apart.skipped_passes.insert("in-place");
    THIMBLE_ASSIGN_OR_RETURN(Plan other, RunPasses(graph, ops, residents, apart));
    if (other.arena_bytes < plan.arena_bytes) {
      plan = std::move(other);
      const auto place =
          std::find_if(plan.decisions.begin(), plan.decisions.end(),
                       [](const Decision& decision) { return decision.pass == "placement"; });
      plan.decisions.insert(place,
                            {"in-place", "left out: its buffers would be placed worse", 0, 0});
    }
  }
  if (auto verified = VerifyPlan(ops, plan); !verified.ok()) {
    return Failed("the plan failed its verification: " + verified.error().message);
  }
  return plan;
}

}  // namespace thimble
