// Executor: runs the plans of a program inside one arena, on whichever device they were planned
// for. It makes no decisions and allocates nothing while it runs; all steps are bound to addresses
// on construction.
//
//   executor->Prepare(plan);
//   executor->Write(images, batch);   // a view from View, looked up once
//   executor->Run(plan);
//   executor->ReadNow(loss, {&number, sizeof number});
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/allocation_counter.h"
#include "thimble/base/result.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/device/device.h"
#include "thimble/exec/bound_plan.h"
#include "thimble/exec/memory_audit.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/program.h"

namespace thimble {

class Executor {
 public:
  // `ops` must be the registry the program was planned with and outlive the executor. Opens the
  // device that the plans are for, with an arena of exactly the planned size, and paints it.
  // kFailed if there is not enough memory or the threads cannot be started.
  static Result<std::unique_ptr<Executor>> Create(Program program, const OpRegistry& ops);
  // The same without a copy: the program must outlive the executor too.
  static Result<std::unique_ptr<Executor>> CreateFor(const Program& program, const OpRegistry& ops);
  // The same on this device, whose arena must have the planned size.
  static Result<std::unique_ptr<Executor>> CreateOn(std::unique_ptr<Device> device, Program program,
                                                    const OpRegistry& ops);

  const Program& program() const { return program_; }
  const OpRegistry& ops() const { return ops_; }
  Device& device() const { return *device_; }
  ThreadPool& pool() { return *pool_; }

  // Call before the inputs of a run are written. The first run of each plan is audited: every
  // buffer is measured (see memory_audit.h), at the cost of a few passes over memory.
  void Prepare(size_t plan);
  // Enqueues all steps of the prepared plan; on the CPU they are finished when it returns. Requires
  // a Prepare of this plan before each run.
  void Run(size_t plan);
  // The same, and adds the seconds that each step took to `step_seconds`, one element per step.
  // Waits for the device.
  void RunTimed(size_t plan, std::span<double> step_seconds);
  // Scans the arena between runs; call it at the end, before reading the results of audit().
  void ScanArena();
  // The largest planned peak of the plans that ran, or the end of the residents if none did. The
  // audit must have measured the same.
  size_t planned_peak_bytes() const;
  bool last_run_was_audited() const { return auditing_; }
  // Whether it took longer than later runs of its plan: it was audited, or the device recorded it.
  bool last_run_was_slower() const { return auditing_ || recording_; }

  // A value of a plan: its address on the device. Requires that the name exists.
  TensorView View(size_t plan, std::string_view value) const;
  // Copy a value, in order with the runs. The span must have the size of the value and stay valid
  // and unchanged until the device has done the copy (Device::Wait).
  void Write(const TensorView& value, std::span<const std::byte> from);
  void Read(const TensorView& value, std::span<std::byte> to) const;
  // The same, finished on return.
  void WriteNow(const TensorView& value, std::span<const std::byte> from);
  void ReadNow(const TensorView& value, std::span<std::byte> to) const;

  // A resident in host memory, for all plans: in the arena if that is host memory, otherwise in a
  // copy of the residents.
  std::span<std::byte> ResidentBytes(std::string_view name) const;
  // Update the copy from the device, or the device from the copy. No effect on the CPU.
  void FetchResidents();
  void StoreResidents();

  // Heap and mapping calls that happened inside Run so far, from any thread of the program,
  // including the GPU driver's.
  AllocationCounts allocations_in_runs() const { return allocations_; }
  // Calls inside Run that allocated or freed device memory.
  int64_t device_allocations_in_runs() const { return device_allocations_; }
  const MemoryAudit& audit() const { return audit_; }

 private:
  // Counts allocations during its lifetime.
  class CountedScope;

  using SharedProgram = std::shared_ptr<const Program>;  // perhaps without owning it

  static Result<std::unique_ptr<Executor>> OpenFor(SharedProgram program, const OpRegistry& ops);
  static Result<std::unique_ptr<Executor>> StartOn(std::unique_ptr<Device> device,
                                                   SharedProgram program, const OpRegistry& ops);
  Executor(std::unique_ptr<Device> device, std::unique_ptr<ThreadPool> pool, SharedProgram program,
           const OpRegistry& ops);
  // Records the start of a run.
  void Begin(size_t plan);
  void RunAudited(size_t plan);

  SharedProgram owned_;
  const Program& program_;
  const OpRegistry& ops_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<HostMemory> resident_copy_;  // null if the arena is host memory
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<BoundPlan>> bound_;  // by plan
  MemoryAudit audit_;
  std::vector<bool> audited_;       // by plan
  bool auditing_ = false;           // for the run prepared last
  bool recording_ = false;          // the device recorded the last run
  std::optional<size_t> prepared_;  // the plan that may run now
  std::string group_with_caches_;   // of the plan that ran last
  AllocationCounts allocations_;
  int64_t device_allocations_ = 0;
};

// Access a value that is a single number.
template <class T>
void WriteNumber(Executor& executor, const TensorView& value, T number) {
  executor.WriteNow(value, std::as_bytes(std::span(&number, 1)));
}
template <class T>
T ReadNumber(const Executor& executor, const TensorView& value) {
  T number{};
  executor.ReadNow(value, std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace thimble
