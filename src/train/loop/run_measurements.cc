#include "thimble/train/loop/run_measurements.h"

#include <fmt/format.h>

namespace thimble {

void AddMeasurements(Executor& executor, TrainSummary& summary) {
  const AllocationCounts allocations = executor.allocations_in_runs();
  summary.arena_bytes = static_cast<int64_t>(executor.program().arena_bytes);
  summary.planned_peak_bytes = static_cast<int64_t>(executor.planned_peak_bytes());
  summary.measured_peak_bytes = static_cast<int64_t>(executor.audit().measured_peak_bytes());
  summary.arena_resident_bytes = executor.device().ArenaResidentBytes();
  summary.heap_calls_in_steps = allocations.heap_calls;
  summary.map_calls_in_steps = allocations.map_calls;
  summary.device = Name(executor.device().kind());
  summary.device_name = executor.device().name();
  summary.device_memory = executor.device().memory();
  summary.device_allocations = executor.device().allocation_calls();
  summary.device_allocations_in_steps = executor.device_allocations_in_runs();
  summary.threads = executor.pool().num_threads();
}

Result<void> CheckMeasurements(const Executor& executor, const TrainSummary& summary) {
  const auto& faults = executor.audit().faults();
  if (!faults.empty()) {
    return Failed(fmt::format("planned and measured memory differ in {} places; the first: {}",
                              faults.size(), faults.front()));
  }
  if (summary.planned_peak_bytes != summary.measured_peak_bytes) {
    return Failed(fmt::format("planned peak {} bytes, measured {}", summary.planned_peak_bytes,
                              summary.measured_peak_bytes));
  }
  if (summary.device_allocations_in_steps != 0) {
    return Failed(fmt::format("{} allocated memory {} times during steps", summary.device,
                              summary.device_allocations_in_steps));
  }
  // On other devices the driver allocates on the heap.
  if (executor.device().kind() != DeviceKind::kCpu) return {};
  if (summary.heap_calls_in_steps != 0 || summary.map_calls_in_steps != 0) {
    return Failed(fmt::format("memory was allocated during steps: {} heap and {} mapping calls",
                              summary.heap_calls_in_steps, summary.map_calls_in_steps));
  }
  return {};
}

}  // namespace thimble
