// Executor: runs the plans of a program inside one arena. It decides nothing and allocates nothing
// while it runs; everything is bound to addresses when it is made.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/base/allocation_counter.h"
#include "thimble/base/function_ref.h"
#include "thimble/base/result.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/exec/arena.h"
#include "thimble/exec/memory_audit.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/program.h"

namespace thimble {

class Executor {
 public:
  // `ops` must be the registry the program was planned with and outlive the executor. Maps the
  // arena and paints it.
  static Result<std::unique_ptr<Executor>> Create(Program program, const OpRegistry& ops);

  const Program& program() const { return program_; }
  const Arena& arena() const { return arena_; }
  ThreadPool& pool() { return *pool_; }

  // Call before the inputs of a run are written. The first run of each plan is audited: every
  // buffer is measured (see memory_audit.h), at the price of a few passes over memory.
  void Prepare(size_t plan);
  // Runs all steps of the plan that was prepared. Requires a Prepare of this plan before each run.
  void Run(size_t plan);
  // The same, and adds the seconds that each step took to `step_seconds`, one element per step.
  void RunTimed(size_t plan, std::span<double> step_seconds);
  // Scans the arena between runs; call at the end, before asking audit() for its verdict.
  void ScanArena();
  // The largest planned peak among the plans that ran, or the residents' end where none did; what
  // the audit must have measured.
  size_t planned_peak_bytes() const;
  bool last_run_was_audited() const { return auditing_; }

  // A value of a plan. Inputs are to be written before Run, outputs to be read after it.
  // Requires that the name exists.
  TensorView View(size_t plan, std::string_view value) const;
  // A resident, whichever plan uses it.
  std::span<std::byte> ResidentBytes(std::string_view name) const;

  // Heap and mapping calls that happened inside Run so far, from any thread of the program.
  AllocationCounts allocations_in_runs() const { return allocations_; }
  const MemoryAudit& audit() const { return audit_; }

 private:
  struct BoundStep {
    const Kernel* kernel = nullptr;
    const Attributes* attributes = nullptr;
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    std::span<std::byte> scratch;
  };

  Executor(Program program, const OpRegistry& ops, Arena arena);
  BoundStep Bind(const Plan& plan, const Step& step, const OpRegistry& ops) const;
  TensorView ViewOf(const Plan& plan, ValueId value) const;
  void RunStep(const BoundStep& step);
  // Calls after_step(step) behind each step.
  void RunSteps(size_t plan, FunctionRef<void(size_t step)> after_step);
  void RunAudited(size_t plan);
  void CountSince(const AllocationCounts& before);

  Program program_;
  Arena arena_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::vector<BoundStep>> bound_;  // by plan, by step
  MemoryAudit audit_;
  std::vector<bool> audited_;       // by plan
  bool auditing_ = false;           // the run prepared last
  std::optional<size_t> prepared_;  // the plan that may run now
  AllocationCounts allocations_;
};

}  // namespace thimble
