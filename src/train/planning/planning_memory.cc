#include "thimble/train/planning/planning_memory.h"

namespace thimble {
namespace {

// For each node of the forward graph. Measured with thimble plan, with and without --recompute
// optimal: 24 kB (wrn-10-1) to 57 kB (wrn-40-2).
constexpr int64_t kPlanningBytesPerNode = 56 << 10;

}  // namespace

int64_t PlanningBytes(const Task& task, const OpRegistry& ops) {
  const Result<Network> network = task.Build(ops, task.FullShape(1).With(1), Mode::kTrain);
  if (!network.ok()) return 0;
  return static_cast<int64_t>(network->graph.nodes.size()) * kPlanningBytesPerNode;
}

Result<void> CheckPlanningMemory(const Task& task, const OpRegistry& ops,
                                 const MemoryLimits& limits) {
  const MemoryNeed need{.block_bytes = PlanningBytes(task, ops),
                        .threads = 0,
                        .what = "planning",
                        .advice = "raise the limit or train a smaller model",
                        .budget_helps = false};
  return CheckMemory(need, limits);
}

}  // namespace thimble
