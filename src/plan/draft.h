// PlanDraft: a plan in the making. Passes read and change it; Assemble turns it into a Plan.
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

// What the caller asks of the planner.
struct PlanOptions {
  DeviceKind device = DeviceKind::kCpu;
  KernelLimits limits;
  std::set<std::string> skipped_passes;       // by name; to measure what a pass is worth
  std::set<std::string> kernel_options = {};  // which kernels were asked for (Kernel::option)
  RecomputeSpec recompute = {};
};

// The kernel of one node, and the scratch it asked for.
struct KernelChoice {
  size_t kernel = 0;
  size_t scratch_bytes = 0;
};

struct PlanDraft {
  Graph graph;
  std::vector<NodeId> order;          // execution order of all nodes
  std::vector<KernelChoice> kernels;  // by NodeId
  std::vector<ValueId> storage;       // by ValueId: the first value of the buffer it lies in
  std::optional<std::vector<size_t>> offsets;  // of Buffers(), relative to the end of the residents
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

// The buffers as intervals to place, one for each. Residents have their places already: 0 bytes.
std::vector<Interval> IntervalsOf(const std::vector<DraftBuffer>& buffers);

// Bytes alive at the fullest step, without the residents.
size_t LivePeakBytes(const PlanDraft& draft);

// Each value in a storage of its own, except that all versions of a persistent value lie where the
// first one lies. Requires chains of carries without cycles (VerifyGraph).
std::vector<ValueId> SeparateStorage(const Graph& graph);

}  // namespace thimble
