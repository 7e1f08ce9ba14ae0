// PlanDraft: an unfinished plan. Passes read and change it; Assemble turns it into a Plan.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "thimble/graph/graph.h"
#include "thimble/graph/kernel.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/memory/place_intervals.h"
#include "thimble/plan/plan.h"
#include "thimble/plan/recompute/recompute_spec.h"

namespace thimble {

// Options of the planner.
struct PlanOptions {
  DeviceKind device = DeviceKind::kCpu;
  KernelLimits limits;
  std::set<std::string> skipped_passes;       // by name; to measure the effect of a pass
  std::set<std::string> kernel_options = {};  // requested kernels (Kernel::option)
  RecomputeSpec recompute = {};
  // If above 0, all that matters is whether some arena is within these bytes: the plan has such an
  // arena or, if there is none, any larger one.
  size_t enough_bytes = 0;
};

// The kernel of one node, and the scratch it requires.
struct KernelChoice {
  size_t kernel = 0;
  size_t scratch_bytes = 0;
};

struct PlanDraft {
  Graph graph;
  std::vector<NodeId> order;                   // execution order of all nodes
  std::vector<KernelChoice> kernels;           // by NodeId
  std::vector<ValueId> storage;                // by ValueId: the first value of its buffer
  std::optional<std::vector<size_t>> offsets;  // of Buffers(), relative to the end of the residents
  std::optional<PlacedIntervals> placed = {};  // by a pass that compared arenas
  ResidentLayout residents;
  std::vector<Decision> decisions;
};

// A buffer of a draft: values that share one storage, or the scratch of one step.
struct DraftBuffer {
  std::string name;
  size_t size_bytes = 0;
  LiveRange live;
  bool resident = false;
  std::vector<ValueId> values;
  std::optional<size_t> scratch_step;
};

// Live range of every value under the draft's order, by ValueId.
std::vector<LiveRange> ValueLiveRanges(const PlanDraft& draft);

// All buffers under the draft's order and storage, in a fixed order: by first value, then scratch.
std::vector<DraftBuffer> Buffers(const PlanDraft& draft);

// The buffers as intervals to place, one for each. Residents, which are already placed, have size
// 0.
std::vector<Interval> IntervalsOf(const std::vector<DraftBuffer>& buffers);

// The most bytes alive at any step, without the residents.
size_t LivePeakBytes(const PlanDraft& draft);

// A separate storage for each value, except that all versions of a persistent value share that of
// the first, and packed values that of their pool. Requires chains of carries without cycles
// (VerifyGraph).
std::vector<ValueId> SeparateStorage(const Graph& graph);

}  // namespace thimble
