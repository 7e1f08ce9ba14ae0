#include "thimble/train/loop/initialize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "thimble/base/philox.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/train/loop/rewiring.h"

namespace thimble {
namespace {

float Draw(const InitRule& rule, const RandomSource& source, uint32_t tensor, uint64_t element) {
  const auto scale = static_cast<float>(rule.scale);
  switch (rule.kind) {
    case InitRule::Kind::kConstant:
      return scale;
    case InitRule::Kind::kNormal: {
      const auto words = source.Words(0, tensor, element);
      return scale * NormalFloat(words[0], words[1]);
    }
    case InitRule::Kind::kUniform:
      return scale * (2 * UniformFloat(source.Words(0, tensor, element)[0]) - 1);
  }
  return 0;
}

// Draws all elements of a tensor, a piece at a time; of a packed one those that are active, which
// get the numbers that they would have in a dense tensor.
void Draw(const InitRule& rule, const RandomSource& source, uint32_t tensor,
          const TensorView& view) {
  std::array<float, kNumbersPerPiece> numbers;
  const Numbers stored = NumbersOf(StoredNumbers(view));
  const auto elements = static_cast<size_t>(view.shape.elements());
  size_t done = 0;
  for (size_t begin = 0; begin < elements; begin += kNumbersPerPiece) {
    size_t count = 0;
    for (size_t i = begin; i < std::min(begin + kNumbersPerPiece, elements); ++i) {
      if (view.is_packed() && !view.packed.IsActive(i)) continue;
      numbers[count++] = Draw(rule, source, tensor, i);
    }
    EncodeNumbers(numbers.data(), count, stored + done);
    done += count;
  }
}

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
  if (value.role == Role::kAccumulator) return false;
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

void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed,
                         const SparsitySpec& sparsity) {
  for (const Resident& resident : executor.program().residents.residents) {
    if (resident.category != Category::kOptimizer && resident.category != Category::kGradients) {
      continue;
    }
    const auto bytes = executor.ResidentBytes(resident.name);
    std::memset(bytes.data(), 0, bytes.size());
  }
  InitializeSparsity(executor, sparsity, seed);
  const RandomSource source(seed, RandomPurpose::kInit);
  std::map<std::string, TensorView> views;
  for (const StoredTensor& tensor : PersistentTensors(executor, TensorSet::kWeights)) {
    views.emplace(tensor.name, tensor.view);
  }
  for (size_t tensor = 0; tensor < inits.size(); ++tensor) {
    const auto found = views.find(inits[tensor].name);
    THIMBLE_CHECK(found != views.end(), "no tensor '{}'", inits[tensor].name);
    Draw(inits[tensor], source, static_cast<uint32_t>(tensor), found->second);
  }
  executor.StoreResidents();
}

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
