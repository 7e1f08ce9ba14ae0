// Profile: measurements of a few training steps next to the plan. A plain value; report/ prints it.
//
// Memory: the holdings of the plan, and the same list with the bytes that were found in use. Both
// are summed by the same accounting, so every category, layer and step has both numbers. Time: in
// some runs each op is timed, in others only the whole run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/exec/measured_holdings.h"
#include "thimble/plan/layer_record.h"
#include "thimble/plan/program_record.h"

namespace thimble {

// A further plan of a training step: parts of another size, or the update after the parts.
struct OtherPlan {
  PlanRecord record;
  std::vector<Holding> measured_holdings;  // as record.holdings, with the bytes in use
  std::vector<double> op_seconds;          // by step of the plan, in one run
};

struct Profile {
  std::string model;
  int64_t batch = 0;
  std::string device_name;
  std::string target;  // SIMD target or precision of the kernels: "AVX2", "tf32"
  int threads = 1;     // of the CPU

  // The main plan: training with a full batch or, if that is split, with its first part. It runs
  // record.runs_per_step times per step.
  PlanRecord record;
  std::vector<Holding> measured_holdings;  // as record.holdings, with the bytes in use
  std::vector<OtherPlan> others;           // the further plans of a step

  size_t arena_bytes = 0;          // planned for all plans of the program
  size_t allocated_bytes = 0;      // size of the allocated arena
  size_t planned_peak_bytes = 0;   // end of the highest buffer in the plan
  size_t measured_peak_bytes = 0;  // highest address found in use

  std::vector<std::string> faults;  // found by the audit
  int64_t heap_calls_in_steps = 0;
  int64_t map_calls_in_steps = 0;
  int64_t device_allocations_in_steps = 0;
  bool host_may_allocate = false;  // true for a GPU, whose driver allocates on the heap

  std::vector<std::vector<double>> timed_runs;  // seconds by run and step of the main plan
  std::vector<double> op_seconds;               // median of timed_runs by step of the plan
  double step_seconds = 0;                      // median of whole training steps
  double predicted_seconds = 0;                 // of a step, before it ran; 0: unknown

  // The batch is of images, or of tokens of the longer side.
  std::string unit = "images";
  double examples_per_second() const { return static_cast<double>(batch) / step_seconds; }
  // Floating-point operations of a whole training step.
  int64_t step_flops() const;
};

inline MemoryAccount PlannedAccount(const Profile& profile) { return Account(profile.record); }
inline MemoryAccount MeasuredAccount(const Profile& profile) {
  return Account(profile.measured_holdings, profile.record.steps.size(),
                 profile.record.arena_bytes);
}

// All calls of one op in a training step.
struct OpProfile {
  std::string op;
  int64_t calls = 0;
  double seconds = 0;
  int64_t flops = 0;
  int64_t moved_bytes = 0;
};
// Longest first.
std::vector<OpProfile> ByOp(const Profile& profile);
// The sum of all ops, called "all".
OpProfile Total(const std::vector<OpProfile>& ops);

// One layer: bytes at the planned peak, time and arithmetic of its ops.
struct LayerProfile {
  LayerRecord planned;
  CategoryBytes measured{};
  double forward_seconds = 0;
  double backward_seconds = 0;
  double update_seconds = 0;
};
// In the order of plan/layer_record.h.
std::vector<LayerProfile> ByLayer(const Profile& profile);

// All differences between runs and plan, one line each, those of single values first. Empty if
// there are none.
std::vector<std::string> DifferencesOf(const Profile& profile);
// kFailed, with the first difference and their number, if there are any.
Result<void> CheckProfile(const Profile& profile);

}  // namespace thimble
