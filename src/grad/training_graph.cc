#include "thimble/grad/training_graph.h"

#include <fmt/format.h>

#include "thimble/grad/differentiate.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

std::vector<ValueId> Parameters(const Graph& graph) {
  std::vector<ValueId> parameters;
  for (size_t index = 0; index < graph.values.size(); ++index) {
    const Value& value = graph.values[index];
    if (value.role == Role::kParameter && !value.producer.valid()) parameters.emplace_back(index);
  }
  return parameters;
}

// The update's own values have fixed names, which a layer of the model may have taken.
Result<ValueId> AddNamed(Graph& graph, Value value) {
  if (graph.Find(value.name).valid()) {
    return BadInput(
        fmt::format("the name '{}' belongs to the optimizer; rename the layer that "
                    "uses it",
                    value.name));
  }
  return graph.AddValue(std::move(value));
}

Result<void> AppendSgd(Graph& graph, const OpRegistry& ops, const OptimizerSpec& optimizer,
                       ValueId parameter, ValueId gradient, ValueId learning_rate) {
  const std::string name = graph.value(parameter).name;
  const std::string layer = LayerOf(graph, parameter);
  if (optimizer.momentum == 0) {
    return AppendUpdateNode(graph, ops,
                            {.op = "sgd_update_plain",
                             .inputs = {parameter, gradient, learning_rate},
                             .attributes = {{"weight_decay", optimizer.weight_decay}},
                             .layer = layer},
                            {parameter});
  }
  THIMBLE_ASSIGN_OR_RETURN(const ValueId momentum, AddNamed(graph, {kMomentumPrefix + name,
                                                                    graph.value(parameter).shape,
                                                                    DType::kF32,
                                                                    Role::kState,
                                                                    {},
                                                                    {}}));
  return AppendUpdateNode(graph, ops,
                          {.op = "sgd_update",
                           .inputs = {parameter, gradient, momentum, learning_rate},
                           .attributes = {{"momentum", optimizer.momentum},
                                          {"weight_decay", optimizer.weight_decay},
                                          {"nesterov", int64_t{optimizer.nesterov}}},
                           .layer = layer},
                          {parameter, momentum});
}

}  // namespace

Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId loss,
                          const OptimizerSpec& optimizer) {
  const std::vector<ValueId> parameters = Parameters(graph);
  THIMBLE_ASSIGN_OR_RETURN(std::vector<ValueId> seed, AppendNode(graph, ops,
                                                                 {.op = "fill",
                                                                  .attributes = {{"value", 1.0}},
                                                                  .phase = Phase::kBackward,
                                                                  .layer = "loss",
                                                                  .output_role = Role::kGradient,
                                                                  .output_names = {"dloss"}}));
  THIMBLE_ASSIGN_OR_RETURN(std::vector<ValueId> gradients,
                           Differentiate(graph, ops, {{loss, seed[0]}}, parameters));
  THIMBLE_ASSIGN_OR_RETURN(
      const ValueId learning_rate,
      AddNamed(graph, {kLearningRateInput, {1}, DType::kF32, Role::kInput, {}, {}}));
  for (size_t i = 0; i < parameters.size(); ++i) {
    graph.values[gradients[i].index()].gradient_of = parameters[i];
    THIMBLE_TRY(AppendSgd(graph, ops, optimizer, parameters[i], gradients[i], learning_rate));
  }
  return {};
}

}  // namespace thimble
