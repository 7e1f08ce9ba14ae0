#include "thimble/grad/training_graph.h"

#include <fmt/format.h>

#include "thimble/grad/differentiate.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

constexpr std::string_view kStatisticsUpdate = "batch_norm_update";

std::vector<ValueId> Parameters(const Graph& graph) {
  std::vector<ValueId> parameters;
  for (size_t index = 0; index < graph.values.size(); ++index) {
    const Value& value = graph.values[index];
    if (value.role == Role::kParameter && !value.producer.valid()) parameters.emplace_back(index);
  }
  return parameters;
}

// The values of the update have fixed names, which a layer of the model may already use.
Result<void> CheckFree(const Graph& graph, const std::string& name) {
  if (!graph.Find(name).valid()) return {};
  return BadInput(fmt::format(
      "the name '{}' is reserved for the optimizer; rename the layer that uses it", name));
}

Result<ValueId> AddNamed(Graph& graph, Value value) {
  THIMBLE_TRY(CheckFree(graph, value.name));
  return graph.AddValue(std::move(value));
}

Result<ValueId> AddInput(Graph& graph, const char* name, DType dtype) {
  return AddNamed(graph, {name, {1}, dtype, Role::kInput, {}, {}});
}

// Adds a value with the shape and type of `like`, under this name.
Result<ValueId> AddLike(Graph& graph, const std::string& name, const Value& like, Role role) {
  return AddNamed(graph, {name, like.shape, DType::kF32, role, {}, {}});
}

// Backward from the loss, whose gradient is `seed`; one gradient for each of the parameters.
Result<std::vector<ValueId>> AppendGradients(Graph& graph, const OpRegistry& ops, ValueId loss,
                                             double seed, const std::vector<ValueId>& parameters) {
  THIMBLE_ASSIGN_OR_RETURN(std::vector<ValueId> dloss, AppendNode(graph, ops,
                                                                  {.op = "fill",
                                                                   .attributes = {{"value", seed}},
                                                                   .phase = Phase::kBackward,
                                                                   .layer = "loss",
                                                                   .output_role = Role::kGradient,
                                                                   .output_names = {"dloss"}}));
  THIMBLE_ASSIGN_OR_RETURN(std::vector<ValueId> gradients,
                           Differentiate(graph, ops, {{loss, dloss[0]}}, parameters));
  for (size_t i = 0; i < parameters.size(); ++i) {
    graph.values[gradients[i].index()].gradient_of = parameters[i];
  }
  return gradients;
}

// The inputs of one parameter's update.
struct UpdateInputs {
  ValueId parameter;
  ValueId gradient;
  ValueId learning_rate;
};

Result<void> AppendSgd(Graph& graph, const OpRegistry& ops, const OptimizerSpec& optimizer,
                       const UpdateInputs& in, const std::string& layer) {
  if (optimizer.momentum == 0) {
    return AppendUpdateNode(graph, ops,
                            {.op = "sgd_update_plain",
                             .inputs = {in.parameter, in.gradient, in.learning_rate},
                             .attributes = {{"weight_decay", optimizer.weight_decay}},
                             .layer = layer},
                            {in.parameter});
  }
  const Value parameter = graph.value(in.parameter);
  THIMBLE_ASSIGN_OR_RETURN(const ValueId momentum, AddLike(graph, kMomentumPrefix + parameter.name,
                                                           parameter, Role::kState));
  return AppendUpdateNode(graph, ops,
                          {.op = "sgd_update",
                           .inputs = {in.parameter, in.gradient, momentum, in.learning_rate},
                           .attributes = {{"momentum", optimizer.momentum},
                                          {"weight_decay", optimizer.weight_decay},
                                          {"nesterov", int64_t{optimizer.nesterov}}},
                           .layer = layer},
                          {in.parameter, momentum});
}

Result<void> AppendAccumulate(Graph& graph, const OpRegistry& ops, ValueId parameter,
                              ValueId gradient, ValueId seen) {
  const std::string layer = LayerOf(graph, parameter);
  const std::string name = kSumPrefix + graph.value(parameter).name;
  THIMBLE_ASSIGN_OR_RETURN(const ValueId sum,
                           AddLike(graph, name, graph.value(parameter), Role::kAccumulator));
  return AppendCarryingNode(graph, ops,
                            {.op = "accumulate",
                             .inputs = {sum, gradient, seen},
                             .phase = Phase::kBackward,
                             .layer = layer},
                            {sum});
}

// Turns an update of running statistics into a node that adds the part's statistics to the sums.
Result<void> MergeInstead(Graph& graph, Node& node, ValueId seen, int64_t samples) {
  if (node.op != kStatisticsUpdate) {
    return BadInput(
        fmt::format("layer '{}': {} does not support parts of a batch", node.layer, node.op));
  }
  for (const size_t i : {0, 1}) {
    Value& running = graph.values[node.inputs[i].index()];
    THIMBLE_TRY(CheckFree(graph, kSumPrefix + running.name));
    running.name = kSumPrefix + running.name;
    running.role = Role::kAccumulator;
    Value& next = graph.values[node.outputs[i].index()];
    next.name = running.name + ".next";
    next.role = running.role;
  }
  node.op = "merge_statistics";
  node.inputs.push_back(seen);
  node.attributes = {{"samples", samples}};
  // Not in the forward phase: nodes that are recomputed there must not add twice.
  node.phase = Phase::kBackward;
  return {};
}

// Moves each node from `first_moved` on to just after the producer of its input `input`, so that a
// gradient need not wait for the others.
void MoveBehindProducers(Graph& graph, size_t first_moved, size_t input) {
  std::vector<std::vector<size_t>> followers(graph.nodes.size());
  for (size_t index = first_moved; index < graph.nodes.size(); ++index) {
    const NodeId producer = graph.value(graph.nodes[index].inputs[input]).producer;
    followers[producer.index()].push_back(index);
  }
  std::vector<Node> nodes;
  const auto move = [&](size_t index) {
    for (ValueId output : graph.nodes[index].outputs) {
      graph.values[output.index()].producer = NodeId(nodes.size());
    }
    nodes.push_back(std::move(graph.nodes[index]));
  };
  for (size_t index = 0; index < first_moved; ++index) {
    move(index);
    for (const size_t follower : followers[index]) move(follower);
  }
  graph.nodes = std::move(nodes);
}

// Appends the node that updates the statistics, as `update` does for a part, from the sums over all
// parts.
Result<void> AppendStatisticsUpdate(Graph& graph, const OpRegistry& ops, const Graph& forward,
                                    const Node& update, const BatchShare& share) {
  std::vector<ValueId> running;
  for (const size_t i : {0, 1}) {
    const Value& value = forward.value(update.inputs[i]);
    running.push_back(graph.AddValue({value.name, value.shape, value.dtype, value.role, {}, {}}));
  }
  std::vector<ValueId> inputs = running;
  for (const size_t i : {0, 1}) {
    const Value& value = forward.value(update.inputs[i]);
    THIMBLE_ASSIGN_OR_RETURN(const ValueId sum,
                             AddLike(graph, kSumPrefix + value.name, value, Role::kAccumulator));
    inputs.push_back(sum);
  }
  Attributes attributes = update.attributes;
  attributes.Set("count", attributes.Int("count") / share.samples * share.batch);
  attributes.Set("samples", share.batch);
  return AppendUpdateNode(graph, ops,
                          {.op = update.op,
                           .inputs = std::move(inputs),
                           .attributes = std::move(attributes),
                           .layer = update.layer},
                          running);
}

}  // namespace

Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId loss,
                          const OptimizerSpec& optimizer) {
  const std::vector<ValueId> parameters = Parameters(graph);
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                           AppendGradients(graph, ops, loss, 1.0, parameters));
  THIMBLE_ASSIGN_OR_RETURN(const ValueId learning_rate,
                           AddInput(graph, kLearningRateInput, DType::kF32));
  for (size_t i = 0; i < parameters.size(); ++i) {
    THIMBLE_TRY(AppendSgd(graph, ops, optimizer, {parameters[i], gradients[i], learning_rate},
                          LayerOf(graph, parameters[i])));
  }
  return {};
}

Result<void> AppendSums(Graph& graph, const OpRegistry& ops, ValueId loss,
                        const BatchShare& share) {
  THIMBLE_ASSIGN_OR_RETURN(const ValueId seen, AddInput(graph, kSeenInput, DType::kI32));
  for (Node& node : graph.nodes) {
    if (node.phase != Phase::kUpdate) continue;
    THIMBLE_TRY(MergeInstead(graph, node, seen, share.samples));
  }
  const double weight = static_cast<double>(share.samples) / static_cast<double>(share.batch);
  const std::vector<ValueId> parameters = Parameters(graph);
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                           AppendGradients(graph, ops, loss, weight, parameters));
  const size_t first_sum = graph.nodes.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    THIMBLE_TRY(AppendAccumulate(graph, ops, parameters[i], gradients[i], seen));
  }
  MoveBehindProducers(graph, first_sum, /*input=*/1);
  return {};
}

Result<Graph> MakeUpdateGraph(const Graph& forward, const OpRegistry& ops,
                              const OptimizerSpec& optimizer, const BatchShare& share) {
  Graph graph;
  for (ValueId id : Parameters(forward)) graph.AddValue(forward.value(id));
  const std::vector<ValueId> parameters = Parameters(graph);
  THIMBLE_ASSIGN_OR_RETURN(const ValueId learning_rate,
                           AddInput(graph, kLearningRateInput, DType::kF32));
  for (ValueId parameter : parameters) {
    const Value value = graph.value(parameter);
    THIMBLE_ASSIGN_OR_RETURN(const ValueId sum,
                             AddLike(graph, kSumPrefix + value.name, value, Role::kAccumulator));
    THIMBLE_TRY(AppendSgd(graph, ops, optimizer, {parameter, sum, learning_rate},
                          LayerOf(forward, forward.Find(value.name))));
  }
  for (const Node& node : forward.nodes) {
    if (node.phase != Phase::kUpdate) continue;
    THIMBLE_TRY(AppendStatisticsUpdate(graph, ops, forward, node, share));
  }
  return graph;
}

}  // namespace thimble
