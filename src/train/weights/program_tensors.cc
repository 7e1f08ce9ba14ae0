#include "thimble/train/weights/program_tensors.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace thimble {
namespace {

// A persistent value in host memory.
TensorView HostView(const Executor& executor, const Graph& graph, const Value& value) {
  if (!value.is_packed()) {
    return {executor.ResidentBytes(value.name).data(), value.dtype, value.shape};
  }
  const PackedIn& packed = value.packed;
  const Value& pattern = graph.value(packed.pattern);
  return {executor.ResidentBytes(graph.value(packed.pool).name).data(), value.dtype, value.shape,
          PackedPlaceIn(executor.ResidentBytes(pattern.name).data(),
                        BlocksOfPattern(pattern.shape.elements()), packed.first_block,
                        value.shape.elements(), packed.tensor)};
}

// `is_shared`: a pool or a pattern.
bool Belongs(const Value& value, bool is_shared, TensorSet set) {
  if (!IsPersistent(value.role) || value.producer.valid()) return false;
  if (value.role == Role::kAccumulator || value.role == Role::kCache) return false;
  if (value.role == Role::kState && set != TensorSet::kCheckpoint) return false;
  return set == TensorSet::kWeights ? !is_shared : !value.is_packed();
}

using Names = std::set<std::string_view>;

// Pools and patterns of packed values.
Names SharedNames(const Executor& executor) {
  Names shared;
  for (const Plan& plan : executor.program().plans) {
    for (const Value& value : plan.graph.values) {
      if (!value.is_packed()) continue;
      shared.insert(plan.graph.value(value.packed.pool).name);
      shared.insert(plan.graph.value(value.packed.pattern).name);
    }
  }
  return shared;
}

// Parameters that convolutions read as their filters.
Names FilterNames(const Executor& executor) {
  Names filters;
  for (const Plan& plan : executor.program().plans) {
    for (const Node& node : plan.graph.nodes) {
      const OpDef& op = executor.ops().Get(node.op);
      for (size_t input = 0; input < node.inputs.size(); ++input) {
        const Value& value = plan.graph.value(node.inputs[input]);
        if (op.InputPort(input).is_filter && IsPersistent(value.role)) filters.insert(value.name);
      }
    }
  }
  return filters;
}

// Adds the optimizer state of these parameters, found as inputs of the same update.
void AddStates(const Executor& executor, Names& filters) {
  const Names parameters = filters;
  for (const Plan& plan : executor.program().plans) {
    const auto name = [&](ValueId id) -> std::string_view { return plan.graph.value(id).name; };
    for (const Node& node : plan.graph.nodes) {
      const bool of_filter = std::any_of(node.inputs.begin(), node.inputs.end(),
                                         [&](ValueId id) { return parameters.contains(name(id)); });
      if (!of_filter) continue;
      for (const ValueId id : node.inputs) {
        if (plan.graph.value(id).role == Role::kState) filters.insert(name(id));
      }
    }
  }
}

}  // namespace

std::vector<StoredTensor> PersistentTensors(const Executor& executor, TensorSet set) {
  std::vector<StoredTensor> tensors;
  Names seen;
  Names filters = FilterNames(executor);
  if (set == TensorSet::kCheckpoint) AddStates(executor, filters);
  const Names shared = SharedNames(executor);
  for (const Plan& plan : executor.program().plans) {
    for (const Value& value : plan.graph.values) {
      if (!Belongs(value, shared.contains(value.name), set)) continue;
      if (!seen.insert(value.name).second) continue;
      tensors.push_back({value.name, HostView(executor, plan.graph, value),
                         filters.contains(value.name) && value.dtype != DType::kQ8
                             ? FileLayout::kOhwiToOihw
                             : FileLayout::kAsStored});
    }
  }
  return tensors;
}

}  // namespace thimble
