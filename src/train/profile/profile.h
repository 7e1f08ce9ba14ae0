// Profile: what a few real training steps showed, beside what was planned for them. A plain value;
// report/ prints it.
//
// Memory: the holdings of the plan, and the same list with the bytes that were found in use. Both
// are added up by the same accounting, so every category, layer and step has both numbers. Time:
// steps of the program one by one in some runs, and whole runs without any clock between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/exec/measured_holdings.h"
#include "thimble/plan/layer_record.h"
#include "thimble/plan/program_record.h"

namespace thimble {

// A plan of a training step beside the main one: parts of another size, or the update behind them.
struct OtherPlan {
  PlanRecord record;
  std::vector<Holding> measured_holdings;  // as record.holdings, with the bytes in use
  std::vector<double> op_seconds;          // by step of the program, in one run
};

struct Profile {
  std::string model;
  int64_t batch = 0;
  std::string device_name;
  std::string target;  // what the kernels were compiled for or compute in: "AVX2", "tf32"
  int threads = 1;     // of the CPU

  // Of training with a full batch or, where that has parts, with the first of them, which ran
  // record.runs_per_step times in each step.
  PlanRecord record;
  std::vector<Holding> measured_holdings;  // as record.holdings, with the bytes in use
  std::vector<OtherPlan> others;           // that ran, too

  size_t arena_bytes = 0;          // planned for all plans of the program
  size_t allocated_bytes = 0;      // the arena that there was
  size_t planned_peak_bytes = 0;   // end of the highest buffer of the plan
  size_t measured_peak_bytes = 0;  // highest address that was in use

  std::vector<std::string> faults;  // of the audit
  int64_t heap_calls_in_steps = 0;
  int64_t map_calls_in_steps = 0;
  int64_t device_allocations_in_steps = 0;
  bool host_may_allocate = false;  // on a GPU, whose driver keeps books of its own on the heap

  std::vector<std::vector<double>> timed_runs;  // seconds, by run and step of the main program
  std::vector<double> op_seconds;               // by step of the program: the median of these
  double step_seconds = 0;                      // of a whole training step: the median

  double images_per_second() const { return static_cast<double>(batch) / step_seconds; }
  // Arithmetic of a whole training step.
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

// What belongs to one layer: bytes at the planned peak, time and arithmetic of its ops.
struct LayerProfile {
  LayerRecord planned;
  CategoryBytes measured{};
  double forward_seconds = 0;
  double backward_seconds = 0;
  double update_seconds = 0;
};
// In the order of plan/layer_record.h.
std::vector<LayerProfile> ByLayer(const Profile& profile);

// Everything in which the runs differ from the plan, one line each, the measured values first.
// Empty if all is well.
std::vector<std::string> DifferencesOf(const Profile& profile);
// kFailed with their number and the first of them, if there are any.
Result<void> CheckProfile(const Profile& profile);

}  // namespace thimble
