// Plan: the steps that execute a graph once, and the place of every value in the arena meanwhile.
//
// The arena is one block of bytes. Residents (parameters, statistics, optimizer state, the prefetch
// ring) have the same offset in every plan of a program and are kept between steps. All other
// buffers belong to one plan and are alive only for some of its steps. A buffer holds one value, or
// several that ops compute in place one after the other.
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

// Sizes of buffers are multiples of this; only byte tensors of odd sizes are padded.
inline constexpr size_t kArenaWordBytes = 4;

// What bytes are used for; docs/memory-accounting.md. Unused bytes are "gaps".
enum class Category { kModel, kGradients, kOptimizer, kActivations, kTransient, kData };
inline constexpr size_t kNumCategories = 6;
std::string_view Name(Category category);

// The category of a value, from its role.
Category CategoryOf(const Graph& graph, ValueId value);

// Memory that is kept between steps, at the same offset in all plans.
struct Resident {
  std::string name;  // of the persistent value, or of a part of the prefetch ring
  size_t size_bytes = 0;
  size_t offset = 0;
  Category category = Category::kModel;
  friend bool operator==(const Resident&, const Resident&) = default;
};

struct ResidentLayout {
  std::vector<Resident> residents;
  size_t end_bytes = 0;  // everything else is at or above this offset
  const Resident* Find(std::string_view name) const;
  friend bool operator==(const ResidentLayout&, const ResidentLayout&) = default;
};

// One node run by one kernel.
struct Step {
  NodeId node;
  size_t kernel = 0;  // index into the kernels of the node's op
  BufferId scratch;   // none if the kernel needs none
  friend bool operator==(const Step&, const Step&) = default;
};

struct Placement {
  std::string name;  // of its first value, or "scratch of …"
  size_t size_bytes = 0;
  size_t offset = 0;
  LiveRange live;
  bool resident = false;  // belongs to a persistent value, as in the resident layout
  friend bool operator==(const Placement&, const Placement&) = default;
};

// The buffer of a value and the steps during which it is alive.
struct ValuePlace {
  BufferId buffer;  // the value starts at the buffer's offset
  LiveRange live;   // from the step that writes it (0 if it exists before) to its last use
  friend bool operator==(const ValuePlace&, const ValuePlace&) = default;
};

// What a pass did and what it saved.
struct Decision {
  std::string pass;
  std::string what;
  int64_t saved_bytes = 0;
  int64_t added_flops = 0;
  friend bool operator==(const Decision&, const Decision&) = default;
};

struct Plan {
  Graph graph;  // as planned: passes may have rewritten the input graph
  DeviceKind device = DeviceKind::kCpu;
  KernelLimits limits;
  std::vector<Step> steps;            // in execution order
  std::vector<Placement> placements;  // by BufferId
  std::vector<ValuePlace> values;     // by ValueId of `graph`
  ResidentLayout residents;
  size_t arena_bytes = 0;        // needed by this plan, including residents
  size_t lower_bound_bytes = 0;  // bytes alive at the peak: no placement can need less
  std::vector<TechniqueRecord> graph_techniques;  // what was done to the graph before planning
  std::vector<Decision> decisions;

  const Placement& placement(BufferId id) const { return placements[id.index()]; }
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace thimble
