#include "thimble/grad/optimizer.h"

#include <fmt/format.h>

#include "thimble/grad/adam.h"
#include "thimble/grad/sgd.h"

namespace thimble {

Result<std::unique_ptr<const Optimizer>> MakeOptimizer(const UpdateSpec& spec) {
  if (spec.optimizer.name == "sgd") return MakeSgd(spec);
  if (spec.optimizer.name == "adam") return MakeAdam(spec);
  return BadInput(fmt::format("no optimizer '{}', expected sgd or adam", spec.optimizer.name));
}

Result<void> CheckNameIsFree(const Graph& graph, const std::string& name) {
  if (!graph.Find(name).valid()) return {};
  return BadInput(fmt::format(
      "the name '{}' is reserved for the optimizer; rename the layer that uses it", name));
}

Result<ValueId> AddUpdateValue(Graph& graph, Value value) {
  THIMBLE_TRY(CheckNameIsFree(graph, value.name));
  return graph.AddValue(std::move(value));
}

Result<ValueId> AddStateOf(Graph& graph, const char* prefix, ValueId parameter) {
  const Value& like = graph.value(parameter);
  return AddUpdateValue(graph, {prefix + like.name, like.shape, DType::kF32, Role::kState, {}, {}});
}

Attributes RoundingOf(const UpdateSpec& spec, const ParameterGradient& of) {
  if (!spec.stochastic_rounding) return {};
  return {
      {"stochastic", int64_t{1}}, {"seed", static_cast<int64_t>(spec.seed)}, {"stream", of.index}};
}

}  // namespace thimble
