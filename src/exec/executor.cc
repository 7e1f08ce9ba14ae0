#include "thimble/exec/executor.h"

#include <algorithm>
#include <chrono>

#include "thimble/base/check.h"
#include "thimble/exec/lifetime_guard.h"

namespace thimble {

Result<std::unique_ptr<Executor>> Executor::Create(Program program, const OpRegistry& ops) {
  THIMBLE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(program.arena_bytes));
  return std::unique_ptr<Executor>(new Executor(std::move(program), ops, std::move(arena)));
}

Executor::Executor(Program program, const OpRegistry& ops, Arena arena)
    : program_(std::move(program)),
      arena_(std::move(arena)),
      audit_(arena_.bytes(), program_.residents) {
  int threads = 1;
  for (const Plan& plan : program_.plans) {
    threads = std::max(threads, plan.limits.threads);
    std::vector<BoundStep> steps;
    for (const Step& step : plan.steps) steps.push_back(Bind(plan, step, ops));
    bound_.push_back(std::move(steps));
  }
  audited_.resize(program_.plans.size(), false);
  pool_ = std::make_unique<ThreadPool>(threads);
}

TensorView Executor::ViewOf(const Plan& plan, ValueId id) const {
  const Value& value = plan.graph.value(id);
  const Placement& placement = plan.placement(plan.values[id.index()].buffer);
  return {arena_.bytes().data() + placement.offset, value.dtype, value.shape};
}

Executor::BoundStep Executor::Bind(const Plan& plan, const Step& step,
                                   const OpRegistry& ops) const {
  const Node& node = plan.graph.node(step.node);
  BoundStep bound;
  bound.kernel = &ops.Get(node.op).kernels()[step.kernel];
  bound.attributes = &node.attributes;
  for (ValueId input : node.inputs) bound.inputs.push_back(ViewOf(plan, input));
  for (ValueId output : node.outputs) bound.outputs.push_back(ViewOf(plan, output));
  if (step.scratch.valid()) {
    const Placement& scratch = plan.placement(step.scratch);
    bound.scratch = arena_.bytes().subspan(scratch.offset, scratch.size_bytes);
  }
  return bound;
}

void Executor::RunStep(const BoundStep& step) {
  step.kernel->run({step.inputs, step.outputs, *step.attributes, step.scratch, *pool_});
}

void Executor::CountSince(const AllocationCounts& before) {
  const AllocationCounts now = ReadAllocationCounts();
  allocations_.heap_calls += now.heap_calls - before.heap_calls;
  allocations_.heap_bytes += now.heap_bytes - before.heap_bytes;
  allocations_.map_calls += now.map_calls - before.map_calls;
}

void Executor::Prepare(size_t plan) {
  auditing_ = !audited_[plan];
  if (auditing_) audit_.Begin(program_.plans[plan]);
  audited_[plan] = true;
  prepared_ = plan;
}

void Executor::Run(size_t plan) {
  RunSteps(plan, [](size_t /*step*/) {});
}

void Executor::RunTimed(size_t plan, std::span<double> step_seconds) {
  using Clock = std::chrono::steady_clock;
  THIMBLE_CHECK(step_seconds.size() == bound_[plan].size(), "{} times for {} steps",
                step_seconds.size(), bound_[plan].size());
  Clock::time_point before = Clock::now();
  RunSteps(plan, [&](size_t step) {
    const Clock::time_point now = Clock::now();
    step_seconds[step] += std::chrono::duration<double>(now - before).count();
    before = now;
  });
}

void Executor::RunSteps(size_t plan, FunctionRef<void(size_t)> after_step) {
  THIMBLE_CHECK(prepared_ == plan, "plan '{}' runs without being prepared", program_.names[plan]);
  prepared_.reset();
  if (auditing_) return RunAudited(plan);
  LifetimeGuard guard(arena_.bytes(), program_.plans[plan]);
  const AllocationCounts before = ReadAllocationCounts();
  for (size_t step = 0; step < bound_[plan].size(); ++step) {
    guard.BeforeStep(step);
    RunStep(bound_[plan][step]);
    guard.AfterStep(step);
    after_step(step);
  }
  CountSince(before);
}

void Executor::ScanArena() { audit_.ScanArena(program_.plans); }

size_t Executor::planned_peak_bytes() const {
  size_t peak = 0;
  for (const Resident& resident : program_.residents.residents) {
    peak = std::max(peak, resident.offset + resident.size_bytes);
  }
  for (size_t plan = 0; plan < audited_.size(); ++plan) {
    if (audited_[plan]) peak = std::max(peak, PlannedPeakBytes(program_.plans[plan]));
  }
  return peak;
}

void Executor::RunAudited(size_t plan) {
  for (size_t step = 0; step < bound_[plan].size(); ++step) {
    audit_.BeforeStep(step);
    const AllocationCounts before = ReadAllocationCounts();
    RunStep(bound_[plan][step]);
    CountSince(before);
    audit_.AfterStep(step);
  }
  audit_.End();
}

TensorView Executor::View(size_t plan, std::string_view value) const {
  const ValueId id = program_.plans[plan].graph.Find(value);
  THIMBLE_CHECK(id.valid(), "plan '{}' has no value '{}'", program_.names[plan], value);
  return ViewOf(program_.plans[plan], id);
}

std::span<std::byte> Executor::ResidentBytes(std::string_view name) const {
  const Resident* resident = program_.residents.Find(name);
  THIMBLE_CHECK(resident != nullptr, "no resident '{}'", name);
  return arena_.bytes().subspan(resident->offset, resident->size_bytes);
}

}  // namespace thimble
