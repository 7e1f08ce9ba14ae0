#include "thimble/grad/optimizer.h"

#include <fmt/format.h>

#include "thimble/grad/sgd.h"

namespace thimble {

Result<std::unique_ptr<const Optimizer>> MakeOptimizer(const UpdateSpec& spec) {
  if (spec.optimizer.name == "sgd") return MakeSgd(spec);
  return BadInput(fmt::format("no optimizer '{}', expected sgd", spec.optimizer.name));
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

}  // namespace thimble
