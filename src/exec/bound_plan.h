// BoundPlan: a plan whose steps are bound to addresses, cut into groups that run at once, and with
// it which groups may run side by side.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/device/device.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/plan.h"

namespace thimble {

// Where a value of the plan lies in this arena.
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
  // Steps of one kernel that knows how to run several calls at once, where no call touches what
  // another one writes; every other step alone. In order, all steps.
  const std::vector<Group>& groups() const { return groups_; }

  // Earlier groups that must be done before this one begins: those that write what it touches or
  // touch what it writes, less those that one of them waits for. Known only where the device runs
  // work side by side.
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
  std::vector<std::vector<size_t>> after_;  // by group; empty where nobody asks
};

}  // namespace thimble
