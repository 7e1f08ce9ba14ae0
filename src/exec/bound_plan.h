// BoundPlan: a plan whose steps are bound to addresses and divided into groups that run at once,
// with the dependencies between groups.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/device/device.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/plan.h"

namespace thimble {

// The view of a value of the plan in this arena.
TensorView ViewOf(const Plan& plan, ValueId value, std::span<std::byte> arena);

class BoundPlan {
 public:
  // Consecutive steps [first, end).
  struct Group {
    size_t first = 0;
    size_t end = 0;
    friend bool operator==(const Group&, const Group&) = default;
  };

  // The arguments must outlive this.
  BoundPlan(const Plan& plan, const OpRegistry& ops, const Device& device, ThreadPool& pool);
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  size_t num_steps() const { return steps_.size(); }
  // All steps, in order. A group has several steps if their kernel can run several calls at once
  // and no call accesses memory that another one writes; otherwise it has one step.
  const std::vector<Group>& groups() const { return groups_; }

  // Earlier groups that must finish before this one begins: those that write memory it accesses or
  // access memory it writes, except groups that another of them already waits for. Filled in only
  // if the device runs work concurrently.
  std::span<const size_t> After(size_t group) const { return after_[group]; }

  void RunStep(size_t step) const { steps_[step].kernel->run(calls_[step]); }
  void RunGroup(const Group& group) const;

 private:
  struct BoundStep {
    const Kernel* kernel = nullptr;
    const Attributes* attributes = nullptr;
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    std::span<std::byte> scratch;
  };

  BoundStep Bind(const Plan& plan, const Step& step, const OpRegistry& ops,
                 std::span<std::byte> arena) const;
  bool MayJoin(const Group& group, size_t step) const;
  // Whether the result depends on the order of these steps.
  bool Conflict(size_t a, size_t b) const;
  bool Conflict(const Group& a, const Group& b) const;
  void FindOrder();

  std::vector<BoundStep> steps_;
  std::vector<KernelCall> calls_;  // views of steps_
  std::vector<Group> groups_;
  std::vector<std::vector<size_t>> after_;  // by group; empty if not needed
};

}  // namespace thimble
