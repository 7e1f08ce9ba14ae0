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
#include "thimble/plan/passes/rest.h"
#include "thimble/plan/recompute/recompute_pass.h"
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

bool IsLeftOut(const PlanPass& pass, const PlanOptions& options) {
  return options.skipped_passes.contains(std::string(pass.Info().name));
}

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
  return PlaceWithoutSharing(IntervalsOf(buffers), kArenaAlignment).offsets;
}

// The end of the highest buffer above the residents: the draft's current peak.
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
  plan.steps.reserve(draft.order.size());
  plan.placements.reserve(buffers.size());
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
      THIMBLE_CHECK(resident != nullptr, "'{}' is not in the resident layout", buffer.name);
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
  // A run keeps all its plans.
  plan.graph.values.shrink_to_fit();
  plan.graph.nodes.shrink_to_fit();
  return plan;
}

}  // namespace

std::vector<PassInfo> OptionalPasses() {
  std::vector<PassInfo> passes;
  for (const auto& pass : PlanPasses()) {
    const PassInfo info = pass->Info();
    if (!info.required && !info.on_demand) passes.push_back(info);
  }
  return passes;
}

bool IsDecided(Decides what, const PlanOptions& options) {
  const auto passes = PlanPasses();
  return std::any_of(passes.begin(), passes.end(), [&](const auto& pass) {
    return pass->Info().decides == what && !IsLeftOut(*pass, options);
  });
}

Result<void> CheckSkippedPasses(const PlanOptions& options) {
  std::set<std::string_view> names;
  for (const PassInfo& pass : OptionalPasses()) names.insert(pass.name);
  for (const std::string& name : options.skipped_passes) {
    if (names.contains(name)) continue;
    return BadInput(
        fmt::format("no pass '{}' to leave out; expected one of {}", name, fmt::join(names, ", ")));
  }
  return {};
}

namespace {

Result<void> RunPass(const PlanPass& pass, const OpRegistry& ops, const PlanOptions& options,
                     PlanDraft& draft) {
  // The effect of a pass is measured in live bytes or, for passes that set offsets, in the peak.
  const bool places = pass.Info().decides == Decides::kOffsets;
  const size_t before = places ? DraftBytes(draft) : LivePeakBytes(draft);
  const int64_t flops_before = CostOf(draft.graph, ops).step_flops;
  THIMBLE_ASSIGN_OR_RETURN(std::string what, pass.Run(draft, ops, options));
  if (what.empty()) return {};  // nothing to record
  const size_t after = places ? DraftBytes(draft) : LivePeakBytes(draft);
  draft.decisions.push_back({std::string(pass.Info().name), what,
                             static_cast<int64_t>(before) - static_cast<int64_t>(after),
                             CostOf(draft.graph, ops).step_flops - flops_before});
  return {};
}

bool ComparesArenas(const PlanOptions& options) {
  const auto passes = PlanPasses();
  return std::any_of(passes.begin(), passes.end(), [&](const auto& pass) {
    return !IsLeftOut(*pass, options) && pass->ComparesArenas(options);
  });
}

// `shares`: whether values may share buffers; if not, the plan records the reason.
Result<Plan> RunPasses(const Graph& graph, const OpRegistry& ops, const ResidentLayout& residents,
                       const PlanOptions& options, bool shares) {
  PlanOptions used = options;
  PlanDraft draft = StartDraft(graph, residents);
  const auto passes = PlanPasses();
  for (const auto& pass : passes) {
    const bool left_out = !shares && pass->Info().decides == Decides::kStorage;
    if (left_out) used.skipped_passes.emplace(pass->Info().name);
  }
  for (const auto& pass : passes) {
    if (!IsLeftOut(*pass, used)) {
      THIMBLE_TRY(RunPass(*pass, ops, used, draft));
    } else if (!IsLeftOut(*pass, options)) {
      draft.decisions.push_back(
          {std::string(pass->Info().name), "not used: the arena is smaller without it", 0, 0});
    }
  }
  return Assemble(std::move(draft), options);
}

}  // namespace

Result<Plan> MakePlan(const Graph& graph, const OpRegistry& ops, const ResidentLayout& residents,
                      const PlanOptions& options) {
  THIMBLE_TRY(CheckSkippedPasses(options));
  THIMBLE_TRY(VerifyGraph(graph, ops));
  THIMBLE_ASSIGN_OR_RETURN(Plan plan, RunPasses(graph, ops, residents, options, /*shares=*/true));
  // Values that share a buffer must have the same address, so sharing can make the arena larger
  // although fewer bytes are alive. That is known only after placement: try both.
  if (IsDecided(Decides::kStorage, options) && !ComparesArenas(options)) {
    THIMBLE_ASSIGN_OR_RETURN(Plan other,
                             RunPasses(graph, ops, residents, options, /*shares=*/false));
    if (other.arena_bytes < plan.arena_bytes) plan = std::move(other);
  }
  if (auto verified = VerifyPlan(ops, plan); !verified.ok()) {
    return Failed("internal error, the plan is not valid: " + verified.error().message);
  }
  return plan;
}

}  // namespace thimble
