#include "thimble/exec/bound_plan.h"

#include <algorithm>

namespace thimble {
namespace {

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() &&
         b.data() < a.data() + a.size();
}

// Packed tensors of one pool share no bytes, wherever they are.
bool Overlap(const TensorView& a, const TensorView& b) {
  if (a.is_packed() || b.is_packed()) {
    return a.data == b.data && a.packed.bits == b.packed.bits && a.is_packed() == b.is_packed();
  }
  return Overlap(a.bytes(), b.bytes());
}

template <class Condition>
bool AnyTensor(const KernelCall& call, const Condition& condition) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), condition) ||
         std::any_of(call.outputs.begin(), call.outputs.end(), condition);
}

bool Touches(const KernelCall& call, const TensorView& tensor) {
  return AnyTensor(call, [&](const TensorView& view) { return Overlap(view, tensor); }) ||
         Overlap(call.scratch, tensor.bytes());
}

bool TouchesScratch(const KernelCall& call, std::span<const std::byte> scratch) {
  return AnyTensor(call, [&](const TensorView& view) { return Overlap(view.bytes(), scratch); }) ||
         Overlap(call.scratch, scratch);
}

bool WritesWhatIsTouchedBy(const KernelCall& writer, const KernelCall& other) {
  return TouchesScratch(other, writer.scratch) ||
         std::any_of(writer.outputs.begin(), writer.outputs.end(),
                     [&](const TensorView& output) { return Touches(other, output); });
}

}  // namespace

TensorView ViewOf(const Plan& plan, ValueId id, std::span<std::byte> arena) {
  const Value& value = plan.graph.value(id);
  const Placement& placement = plan.placement(plan.values[id.index()].buffer);
  TensorView view{arena.data() + placement.offset, value.dtype, value.shape};
  if (value.is_packed()) {
    const TensorView pattern = ViewOf(plan, value.packed.pattern, arena);
    view.packed =
        PackedPlaceIn(pattern.data, BlocksOfPattern(pattern.shape.elements()),
                      value.packed.first_block, value.shape.elements(), value.packed.tensor);
  }
  return view;
}

BoundPlan::BoundPlan(const Plan& plan, const OpRegistry& ops, const Device& device,
                     ThreadPool& pool) {
  for (const Step& step : plan.steps) steps_.push_back(Bind(plan, step, ops, device.arena()));
  for (const BoundStep& step : steps_) {
    calls_.push_back(
        {step.inputs, step.outputs, *step.attributes, step.scratch, pool, device.stream()});
  }
  for (size_t step = 0; step < steps_.size(); ++step) {
    if (!groups_.empty() && MayJoin(groups_.back(), step)) {
      groups_.back().end = step + 1;
    } else {
      groups_.push_back({step, step + 1});
    }
  }
  if (device.runs_side_by_side()) FindOrder();
}

BoundPlan::BoundStep BoundPlan::Bind(const Plan& plan, const Step& step, const OpRegistry& ops,
                                     std::span<std::byte> arena) const {
  const Node& node = plan.graph.node(step.node);
  BoundStep bound;
  bound.kernel = &ops.Get(node.op).kernels()[step.kernel];
  bound.attributes = &node.attributes;
  for (ValueId input : node.inputs) bound.inputs.push_back(ViewOf(plan, input, arena));
  for (ValueId output : node.outputs) bound.outputs.push_back(ViewOf(plan, output, arena));
  if (step.scratch.valid()) {
    const Placement& scratch = plan.placement(step.scratch);
    bound.scratch = arena.subspan(scratch.offset, scratch.size_bytes);
  }
  return bound;
}

bool BoundPlan::MayJoin(const Group& group, size_t step) const {
  const Kernel* kernel = steps_[step].kernel;
  if (kernel->run_group == nullptr || kernel != steps_[group.first].kernel) return false;
  return !Conflict(group, {step, step + 1});
}

bool BoundPlan::Conflict(size_t a, size_t b) const {
  return WritesWhatIsTouchedBy(calls_[a], calls_[b]) || WritesWhatIsTouchedBy(calls_[b], calls_[a]);
}

bool BoundPlan::Conflict(const Group& a, const Group& b) const {
  for (size_t i = a.first; i < a.end; ++i) {
    for (size_t j = b.first; j < b.end; ++j) {
      if (Conflict(i, j)) return true;
    }
  }
  return false;
}

void BoundPlan::FindOrder() {
  std::vector<std::vector<bool>> done_before;  // [group][earlier]: waits for it, directly or not
  for (size_t group = 0; group < groups_.size(); ++group) {
    std::vector<size_t> after;
    std::vector<bool> done(group, false);
    // The latest first: what they wait for need not be listed.
    for (size_t earlier = group; earlier-- > 0;) {
      if (done[earlier] || !Conflict(groups_[earlier], groups_[group])) continue;
      after.push_back(earlier);
      done[earlier] = true;
      for (size_t i = 0; i < earlier; ++i) done[i] = done[i] || done_before[earlier][i];
    }
    after_.push_back(std::move(after));
    done_before.push_back(std::move(done));
  }
}

void BoundPlan::RunGroup(const Group& group) const {
  if (group.end == group.first + 1) return RunStep(group.first);
  steps_[group.first].kernel->run_group(
      std::span(calls_).subspan(group.first, group.end - group.first));
}

}  // namespace thimble
