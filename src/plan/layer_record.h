// LayerRecord: the bytes of a network layer in the arena at the peak, and its arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/plan/program_record.h"

namespace thimble {

struct LayerRecord {
  std::string name;  // empty: belongs to no layer (batches, prefetch ring)
  CategoryBytes at_peak{};
  int64_t forward_flops = 0;
  int64_t step_flops = 0;  // forward, backward and update
  friend bool operator==(const LayerRecord&, const LayerRecord&) = default;
};

// In the order of the layers' first step; what belongs to no layer comes last. Their bytes add up
// to the categories at the peak, their arithmetic to the plan's.
std::vector<LayerRecord> LayersOf(const PlanRecord& plan);

// The same with the arithmetic of a whole training step: all runs of its plans. Bytes are those of
// the first plan.
std::vector<LayerRecord> LayersOf(const ProgramRecord& program);

}  // namespace thimble
