#include "thimble/train/loop/initialize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "thimble/base/philox.h"
#include "thimble/device/cpu/numbers.h"

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

// Draws all elements of a tensor, a piece at a time.
void Draw(const InitRule& rule, const RandomSource& source, uint32_t tensor,
          const TensorView& view) {
  std::array<float, kNumbersPerPiece> numbers;
  const auto elements = static_cast<size_t>(view.shape.elements());
  for (size_t begin = 0; begin < elements; begin += kNumbersPerPiece) {
    const size_t count = std::min(kNumbersPerPiece, elements - begin);
    for (size_t i = 0; i < count; ++i) numbers[i] = Draw(rule, source, tensor, begin + i);
    EncodeNumbers(numbers.data(), count, NumbersOf(view) + begin);
  }
}

using Names = std::set<std::string_view>;

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

void InitializeResidents(Executor& executor, const std::vector<InitRule>& inits, uint64_t seed) {
  for (const Resident& resident : executor.program().residents.residents) {
    if (resident.category != Category::kOptimizer && resident.category != Category::kGradients) {
      continue;
    }
    const auto bytes = executor.ResidentBytes(resident.name);
    std::memset(bytes.data(), 0, bytes.size());
  }
  const RandomSource source(seed, RandomPurpose::kInit);
  std::map<std::string, TensorView> views;
  for (const StoredTensor& tensor : PersistentTensors(executor, /*with_state=*/false)) {
    views.emplace(tensor.name, tensor.view);
  }
  for (size_t tensor = 0; tensor < inits.size(); ++tensor) {
    const auto found = views.find(inits[tensor].name);
    THIMBLE_CHECK(found != views.end(), "no tensor '{}'", inits[tensor].name);
    Draw(inits[tensor], source, static_cast<uint32_t>(tensor), found->second);
  }
  executor.StoreResidents();
}

std::vector<StoredTensor> PersistentTensors(const Executor& executor, bool with_state) {
  std::vector<StoredTensor> tensors;
  Names seen;
  Names filters = FilterNames(executor);
  if (with_state) AddStates(executor, filters);
  for (const Plan& plan : executor.program().plans) {
    for (const Value& value : plan.graph.values) {
      if (!IsPersistent(value.role) || value.producer.valid()) continue;
      if (value.role == Role::kState && !with_state) continue;
      if (value.role == Role::kAccumulator) continue;
      if (!seen.insert(value.name).second) continue;
      tensors.push_back({value.name,
                         {executor.ResidentBytes(value.name).data(), value.dtype, value.shape},
                         filters.contains(value.name) && value.dtype != DType::kQ8
                             ? FileLayout::kOhwiToOihw
                             : FileLayout::kAsStored});
    }
  }
  return tensors;
}

}  // namespace thimble
