// Plan: the steps of one pass through a graph, and where everything lies in the arena meanwhile.
//
// The arena is one block of bytes. Residents (parameters, statistics, optimizer state, the prefetch
// ring) have the same place in every plan of a program and keep it between steps. All other buffers
// belong to one plan and live for some of its steps only. A buffer holds one value, or several that
// an op computes in place one after the other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/strong_id.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/kernel.h"
#include "thimble/plan/memory/live_range.h"
#include "thimble/plan/technique_record.h"

namespace thimble {

using BufferId = StrongId<struct BufferTag>;

// Every offset in the arena is a multiple of this: a cache line, and the widest SIMD register.
inline constexpr size_t kArenaAlignment = 64;

// Sizes of buffers are counted in words of this many bytes; only byte tensors of odd sizes notice.
inline constexpr size_t kArenaWordBytes = 4;

// Whose bytes they are; docs/memory-accounting.md. What belongs to nobody is "gaps".
enum class Category { kModel, kGradients, kOptimizer, kActivations, kTransient, kData };
inline constexpr size_t kNumCategories = 6;
std::string_view Name(Category category);

// The category of a value, from its role.
Category CategoryOf(const Graph& graph, ValueId value);

// Something that keeps its place between steps and across plans.
struct Resident {
  std::string name;  // of the persistent value, or of a part of the prefetch ring
  size_t size_bytes = 0;
  size_t offset = 0;
  Category category = Category::kModel;
  friend bool operator==(const Resident&, const Resident&) = default;
};

struct ResidentLayout {
  std::vector<Resident> residents;
  size_t end_bytes = 0;  // everything else lies at or above this offset
  const Resident* Find(std::string_view name) const;
  friend bool operator==(const ResidentLayout&, const ResidentLayout&) = default;
};

// One node run by one kernel.
struct Step {
  NodeId node;
  size_t kernel = 0;  // index into the kernels of the node's op
  BufferId scratch;   // none where the kernel needs none
  friend bool operator==(const Step&, const Step&) = default;
};

struct Placement {
  std::string name;  // of its first value, or "scratch of …"
  size_t size_bytes = 0;
  size_t offset = 0;
  LiveRange live;
  bool resident = false;  // a persistent value's place, as in the resident layout
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Where a value lies and during which steps.
struct ValuePlace {
  BufferId buffer;  // its offset is the buffer's
  LiveRange live;   // from the step that writes it (0 for what is there before) to its last use
  friend bool operator==(const ValuePlace&, const ValuePlace&) = default;
};

// What a pass did and what it was worth.
struct Decision {
  std::string pass;
  std::string what;
  int64_t saved_bytes = 0;
  int64_t added_flops = 0;
  friend bool operator==(const Decision&, const Decision&) = default;
};

struct Plan {
  Graph graph;  // as planned: passes may have rewritten the one that was handed in
  DeviceKind device = DeviceKind::kCpu;
  KernelLimits limits;
  std::vector<Step> steps;            // in the order of execution
  std::vector<Placement> placements;  // by BufferId
  std::vector<ValuePlace> values;     // by ValueId of `graph`
  ResidentLayout residents;
  size_t arena_bytes = 0;        // what this plan needs, residents included
  size_t lower_bound_bytes = 0;  // bytes alive at the fullest step: no placement can need less
  std::vector<TechniqueRecord> graph_techniques;  // what was done to the graph before planning
  std::vector<Decision> decisions;

  const Placement& placement(BufferId id) const { return placements[id.index()]; }
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace thimble
