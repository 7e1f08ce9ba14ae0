#include "thimble/grad/training_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "thimble/grad/differentiate.h"
#include "thimble/grad/optimizer.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

constexpr std::string_view kStatisticsUpdate = "batch_norm_update";
constexpr int64_t kLossScaleEntries = 4;

std::vector<ValueId> Parameters(const Graph& graph) {
  std::vector<ValueId> parameters;
  for (size_t index = 0; index < graph.values.size(); ++index) {
    const Value& value = graph.values[index];
    if (value.role == Role::kParameter && !value.producer.valid()) parameters.emplace_back(index);
  }
  return parameters;
}

Result<ValueId> AddInput(Graph& graph, const char* name, DType dtype) {
  return AddUpdateValue(graph, {name, {1}, dtype, Role::kInput, {}, {}});
}

// Adds an accumulator with the shape of `like`.
Result<ValueId> AddSum(Graph& graph, const Value& like) {
  return AddUpdateValue(
      graph, {kSumPrefix + like.name, like.shape, DType::kF32, Role::kAccumulator, {}, {}});
}

// Puts the nodes into this order.
void Reorder(Graph& graph, const std::vector<size_t>& order) {
  std::vector<Node> nodes;
  for (const size_t index : order) {
    for (ValueId output : graph.nodes[index].outputs) {
      graph.values[output.index()].producer = NodeId(nodes.size());
    }
    nodes.push_back(std::move(graph.nodes[index]));
  }
  graph.nodes = std::move(nodes);
}

// Moves the nodes from `first_moved` on, which are in the order of these producers, each to just
// after its producer, so that a gradient need not wait for the others. `leaders[i]` is the node
// that the i-th of them follows.
void MoveBehind(Graph& graph, size_t first_moved, const std::vector<NodeId>& leaders) {
  std::vector<std::vector<size_t>> followers(first_moved);
  for (size_t i = 0; i < leaders.size(); ++i) {
    followers[leaders[i].index()].push_back(first_moved + i);
  }
  std::vector<size_t> order;
  for (size_t index = 0; index < first_moved; ++index) {
    order.push_back(index);
    order.insert(order.end(), followers[index].begin(), followers[index].end());
  }
  Reorder(graph, order);
}

// Appends backward and updates to one graph.
class UpdateBuilder {
 public:
  static Result<UpdateBuilder> Make(Graph& graph, const OpRegistry& ops, const UpdateSpec& spec,
                                    bool in_parts) {
    UpdateBuilder builder(graph, ops, spec);
    THIMBLE_ASSIGN_OR_RETURN(builder.optimizer_, MakeOptimizer(spec));
    THIMBLE_ASSIGN_OR_RETURN(const GradientUse use, ChooseGradientUse(spec, in_parts));
    builder.in_backward_ = use.in_backward;
    if (!spec.checks_gradients()) return builder;
    THIMBLE_ASSIGN_OR_RETURN(
        builder.loss_scale_,
        AddUpdateValue(graph,
                       {kLossScaleState, {kLossScaleEntries}, DType::kF32, Role::kState, {}, {}}));
    return builder;
  }

  bool in_backward() const { return in_backward_; }
  UpdateNumbers& numbers() { return numbers_; }

  Result<void> AddLearningRate() {
    THIMBLE_ASSIGN_OR_RETURN(numbers_.learning_rate,
                             AddInput(graph_, kLearningRateInput, DType::kF32));
    return {};
  }
  Result<void> AddSeen() {
    THIMBLE_ASSIGN_OR_RETURN(numbers_.seen, AddInput(graph_, kSeenInput, DType::kI32));
    return {};
  }
  // The number of the update is there wherever an optional number of updates is.
  Result<void> AddUpdateNumber() {
    const bool is_read =
        spec_.checks_gradients() || spec_.stochastic_rounding || optimizer_->ReadsUpdateNumber();
    if (!is_read) return {};
    THIMBLE_ASSIGN_OR_RETURN(numbers_.update, AddInput(graph_, kUpdateInput, DType::kI32));
    return {};
  }

  // Backward from the loss; one gradient for each parameter, in the order in which they are
  // computed.
  Result<void> AppendBackward(ValueId loss) {
    const std::vector<ValueId> parameters = Parameters(graph_);
    THIMBLE_ASSIGN_OR_RETURN(const ValueId seed, AppendSeed());
    THIMBLE_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                             Differentiate(graph_, ops_, {{loss, seed}}, parameters));
    for (size_t i = 0; i < parameters.size(); ++i) {
      graph_.values[gradients[i].index()].gradient_of = parameters[i];
      gradients_.push_back({.parameter = parameters[i],
                            .gradient = gradients[i],
                            .index = static_cast<int64_t>(i),
                            .layer = LayerOf(graph_, parameters[i])});
    }
    return {};
  }

  void AddGradient(ParameterGradient gradient) { gradients_.push_back(std::move(gradient)); }

  // The checks and updates of a whole batch, or after all parts of one.
  Result<void> AppendUpdates() {
    THIMBLE_TRY(AppendCheck(gradients_, Phase::kUpdate, "update"));
    if (numbers_.gradient_factor.valid()) SkipStatistics();
    for (const ParameterGradient& of : gradients_) {
      THIMBLE_TRY(optimizer_->AppendUpdate(graph_, ops_, of, numbers_));
    }
    return {};
  }

  // Uses each gradient right after it is computed: `append` appends the node that does. Small ones
  // wait for the end of backward: they need few bytes, and one check and one launch serve them all.
  // (Not those of filters that may become sparse, which must not exist as a whole.)
  template <class Append>
  Result<void> AppendInBackward(const Append& append) {
    const auto is_small = [&](const ParameterGradient& of) {
      constexpr int64_t kSmallElements = 4096;
      const Shape& shape = graph_.value(of.gradient).shape;
      const bool may_be_sparse = spec_.sparsity.fraction > 0 && shape.rank() == 4;
      return shape.elements() < kSmallElements && !may_be_sparse;
    };
    std::stable_sort(gradients_.begin(), gradients_.end(), [&](const auto& a, const auto& b) {
      if (is_small(a) != is_small(b)) return is_small(b);
      return ProducerOf(a.gradient).index() < ProducerOf(b.gradient).index();
    });
    const auto first_small = std::find_if(gradients_.begin(), gradients_.end(), is_small);
    THIMBLE_TRY(AppendBehindGradients({gradients_.begin(), first_small}, append));
    const std::span<ParameterGradient> small(first_small, gradients_.end());
    THIMBLE_TRY(AppendCheck(small, Phase::kUpdate, "update"));
    for (const ParameterGradient& of : small) THIMBLE_TRY(append(of));
    return {};
  }

  template <class Append>
  Result<void> AppendBehindGradients(std::span<ParameterGradient> gradients, const Append& append) {
    const size_t first_moved = graph_.nodes.size();
    std::vector<NodeId> leaders;
    for (ParameterGradient& of : gradients) {
      of.phase = Phase::kBackward;
      leaders.push_back(ProducerOf(of.gradient));
      const size_t num_nodes = graph_.nodes.size();
      THIMBLE_TRY(AppendCheck({&of, 1}, Phase::kBackward, of.layer));
      THIMBLE_TRY(append(of));
      leaders.resize(leaders.size() + graph_.nodes.size() - num_nodes - 1, leaders.back());
    }
    MoveBehind(graph_, first_moved, leaders);
    return {};
  }

  Result<void> AppendUpdatesInBackward() {
    THIMBLE_TRY(AppendInBackward([&](const ParameterGradient& of) {
      return optimizer_->AppendUpdate(graph_, ops_, of, numbers_);
    }));
    // A number of the forward pass that is not finite reaches the loss, and so every gradient: the
    // last check sees it.
    if (numbers_.gradient_factor.valid()) SkipStatistics();
    MoveUpdatesBehindReaders();
    return {};
  }
  Result<void> AppendGathering() {
    return AppendInBackward([&](const ParameterGradient& of) {
      return optimizer_->AppendGather(graph_, ops_, of, numbers_);
    });
  }
  Result<void> AppendAccumulators() {
    const size_t first_moved = graph_.nodes.size();
    std::vector<NodeId> leaders;
    for (const ParameterGradient& of : gradients_) {
      THIMBLE_ASSIGN_OR_RETURN(const ValueId sum, AddSum(graph_, graph_.value(of.parameter)));
      leaders.push_back(ProducerOf(of.gradient));
      THIMBLE_TRY(AppendCarryingNode(graph_, ops_,
                                     {.op = "accumulate",
                                      .inputs = {sum, of.gradient, numbers_.seen},
                                      .phase = Phase::kBackward,
                                      .layer = of.layer},
                                     {sum}));
    }
    MoveBehind(graph_, first_moved, leaders);
    return {};
  }
  Result<void> AppendApplying() {
    for (const ParameterGradient& of : gradients_) {
      THIMBLE_TRY(optimizer_->AppendApply(graph_, ops_, of, numbers_));
    }
    return {};
  }

  // Where gradients are checked part by part: checks the sums of running statistics, whose nodes
  // the graph has. They stay as they are if a sum is not finite.
  Result<void> AppendStatisticsCheck() {
    std::vector<ParameterGradient> sums;
    for (const Node& node : graph_.nodes) {
      if (node.op != kStatisticsUpdate) continue;
      for (const size_t i : {2, 3}) sums.push_back({.gradient = node.inputs[i]});
    }
    THIMBLE_TRY(AppendCheck(sums, Phase::kUpdate, "statistics"));
    if (numbers_.gradient_factor.valid()) SkipStatistics();
    return {};
  }

  // The last node of an update.
  Result<void> AppendScaleAdjustment() {
    if (!spec_.checks_gradients()) return {};
    const LossScaleSpec& scale = spec_.loss_scale;
    const bool changes = scale.initial > 0 && scale.interval > 0;
    return AppendUpdateNode(graph_, ops_,
                            {.op = "adjust_loss_scale",
                             .inputs = {LastVersion(graph_, loss_scale_)},
                             .attributes = {{"interval", changes ? scale.interval : int64_t{0}},
                                            {"factor", scale.factor},
                                            {"floor", scale.floor},
                                            {"ceiling", std::max(0x1p24, scale.initial)}},
                             .layer = "loss"},
                            {LastVersion(graph_, loss_scale_)});
  }

 private:
  UpdateBuilder(Graph& graph, const OpRegistry& ops, const UpdateSpec& spec)
      : graph_(graph), ops_(ops), spec_(spec) {}

  NodeId ProducerOf(ValueId value) const { return graph_.value(value).producer; }

  // Where backward starts: the weight of the loss, times the scale if there is one.
  Result<ValueId> AppendSeed() {
    THIMBLE_ASSIGN_OR_RETURN(const ValueId weight, AddInput(graph_, kLossWeightInput, DType::kF32));
    if (!spec_.checks_gradients()) return weight;
    THIMBLE_ASSIGN_OR_RETURN(const std::vector<ValueId> seed,
                             AppendNode(graph_, ops_,
                                        {.op = "scale_loss",
                                         .inputs = {weight, loss_scale_},
                                         .phase = Phase::kBackward,
                                         .layer = "loss",
                                         .output_role = Role::kGradient,
                                         .output_names = {"dloss"}}));
    return seed[0];
  }

  // Appends a check if gradients are checked; updates from here on use its factor.
  Result<void> AppendCheck(std::span<const ParameterGradient> checked, Phase phase,
                           const std::string& layer) {
    if (!spec_.checks_gradients() || checked.empty()) return {};
    const ValueId before = LastVersion(graph_, loss_scale_);
    std::vector<ValueId> inputs = {before};
    for (const ParameterGradient& of : checked) inputs.push_back(of.gradient);
    THIMBLE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        AppendNode(graph_, ops_,
                   {.op = "check_gradients",
                    .inputs = std::move(inputs),
                    .attributes = {{"clip", spec_.clip}},
                    .phase = phase,
                    .layer = layer,
                    .output_role = Role::kGradient,
                    .output_names = {layer + ".gradient_factor",
                                     std::string(kLossScaleState) + ".next"}}));
    graph_.values[outputs[1].index()].role = Role::kState;
    graph_.carries.push_back({before, outputs[1]});
    numbers_.gradient_factor = outputs[0];
    return {};
  }

  // Running statistics do not change in a skipped update: their nodes move behind the check.
  void SkipStatistics() {
    std::vector<size_t> order;
    std::vector<size_t> moved;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      Node& node = graph_.nodes[index];
      const bool is_statistics = node.op == kStatisticsUpdate;
      if (is_statistics) node.inputs.push_back(numbers_.gradient_factor);
      (is_statistics ? moved : order).push_back(index);
    }
    order.insert(order.end(), moved.begin(), moved.end());
    Reorder(graph_, order);
  }

  // A parameter's update overwrites it, so it comes after every node that reads it.
  void MoveUpdatesBehindReaders();

  Graph& graph_;
  const OpRegistry& ops_;
  const UpdateSpec& spec_;
  std::unique_ptr<const Optimizer> optimizer_;
  bool in_backward_ = false;
  ValueId loss_scale_;  // its first version
  UpdateNumbers numbers_;
  std::vector<ParameterGradient> gradients_;
};

void UpdateBuilder::MoveUpdatesBehindReaders() {
  // The last node that reads an old version, for each node that overwrites it.
  std::vector<size_t> last_reader(graph_.values.size(), 0);
  std::vector<size_t> place(graph_.nodes.size());
  for (size_t index = 0; index < graph_.nodes.size(); ++index) {
    place[index] = index;
    for (ValueId input : graph_.nodes[index].inputs) last_reader[input.index()] = index;
  }
  std::vector<std::vector<size_t>> followers(graph_.nodes.size());
  for (const Carry& carry : graph_.carries) {
    const NodeId writer = ProducerOf(carry.to);
    if (graph_.node(writer).phase != Phase::kBackward) continue;
    place[writer.index()] = std::max(place[writer.index()], last_reader[carry.from.index()]);
  }
  std::vector<size_t> order;
  for (size_t index = 0; index < graph_.nodes.size(); ++index) {
    if (place[index] != index) followers[place[index]].push_back(index);
  }
  for (size_t index = 0; index < graph_.nodes.size(); ++index) {
    if (place[index] == index) order.push_back(index);
    order.insert(order.end(), followers[index].begin(), followers[index].end());
  }
  Reorder(graph_, order);
}

// Turns an update of running statistics into a node that adds the part's statistics to the sums.
Result<void> MergeInstead(Graph& graph, Node& node, ValueId seen, int64_t samples) {
  if (node.op != kStatisticsUpdate) {
    return BadInput(
        fmt::format("layer '{}': {} does not support parts of a batch", node.layer, node.op));
  }
  for (const size_t i : {0, 1}) {
    Value& running = graph.values[node.inputs[i].index()];
    THIMBLE_TRY(CheckNameIsFree(graph, kSumPrefix + running.name));
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

// Appends the node that updates the statistics, as `update` does for a part, from the sums over all
// parts. They stay as they are where the factor is 0.
Result<void> AppendStatisticsUpdate(Graph& graph, const OpRegistry& ops, const Graph& forward,
                                    const Node& update, const BatchShare& share,
                                    ValueId gradient_factor) {
  std::vector<ValueId> running;
  for (const size_t i : {0, 1}) {
    const Value& value = forward.value(update.inputs[i]);
    running.push_back(graph.AddValue({value.name, value.shape, value.dtype, value.role, {}, {}}));
  }
  std::vector<ValueId> inputs = running;
  for (const size_t i : {0, 1}) {
    THIMBLE_ASSIGN_OR_RETURN(const ValueId sum, AddSum(graph, forward.value(update.inputs[i])));
    inputs.push_back(sum);
  }
  if (gradient_factor.valid()) inputs.push_back(gradient_factor);
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

Result<GradientUse> ChooseGradientUse(const UpdateSpec& spec, bool in_parts) {
  if (!spec.in_backward) return GradientUse{};
  if (spec.clip > 0) return GradientUse{false, "clipping needs the norm of all gradients"};
  if (!in_parts) return GradientUse{true, {}};
  THIMBLE_ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer, MakeOptimizer(spec));
  const std::string why_not = optimizer->WhyNotByParts();
  return GradientUse{why_not.empty(), why_not};
}

Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId loss,
                          const UpdateSpec& spec) {
  THIMBLE_ASSIGN_OR_RETURN(UpdateBuilder builder,
                           UpdateBuilder::Make(graph, ops, spec, /*in_parts=*/false));
  THIMBLE_TRY(builder.AppendBackward(loss));
  THIMBLE_TRY(builder.AddLearningRate());
  THIMBLE_TRY(builder.AddUpdateNumber());
  THIMBLE_TRY(builder.in_backward() ? builder.AppendUpdatesInBackward() : builder.AppendUpdates());
  return builder.AppendScaleAdjustment();
}

Result<void> AppendSums(Graph& graph, const OpRegistry& ops, ValueId loss, const UpdateSpec& spec,
                        const BatchShare& share) {
  THIMBLE_ASSIGN_OR_RETURN(UpdateBuilder builder,
                           UpdateBuilder::Make(graph, ops, spec, /*in_parts=*/true));
  THIMBLE_TRY(builder.AddSeen());
  for (Node& node : graph.nodes) {
    if (node.phase != Phase::kUpdate) continue;
    THIMBLE_TRY(MergeInstead(graph, node, builder.numbers().seen, share.samples));
  }
  THIMBLE_TRY(builder.AppendBackward(loss));
  if (!builder.in_backward()) return builder.AppendAccumulators();
  THIMBLE_TRY(builder.AddUpdateNumber());
  return builder.AppendGathering();
}

Result<Graph> MakeUpdateGraph(const Graph& forward, const OpRegistry& ops, const UpdateSpec& spec,
                              const BatchShare& share) {
  Graph graph;
  for (ValueId id : Parameters(forward)) graph.AddValue(forward.value(id));
  const std::vector<ValueId> parameters = Parameters(graph);
  THIMBLE_ASSIGN_OR_RETURN(UpdateBuilder builder,
                           UpdateBuilder::Make(graph, ops, spec, /*in_parts=*/true));
  THIMBLE_TRY(builder.AddLearningRate());
  THIMBLE_TRY(builder.AddUpdateNumber());
  for (size_t i = 0; i < parameters.size(); ++i) {
    ParameterGradient of{.parameter = parameters[i], .index = static_cast<int64_t>(i)};
    of.layer = LayerOf(forward, forward.Find(graph.value(parameters[i]).name));
    if (!builder.in_backward()) {
      THIMBLE_ASSIGN_OR_RETURN(of.gradient, AddSum(graph, graph.value(parameters[i])));
    }
    builder.AddGradient(std::move(of));
  }
  THIMBLE_TRY(builder.in_backward() ? builder.AppendApplying() : builder.AppendUpdates());
  for (const Node& node : forward.nodes) {
    if (node.phase != Phase::kUpdate) continue;
    THIMBLE_TRY(AppendStatisticsUpdate(graph, ops, forward, node, share,
                                       builder.numbers().gradient_factor));
  }
  if (builder.in_backward()) THIMBLE_TRY(builder.AppendStatisticsCheck());
  THIMBLE_TRY(builder.AppendScaleAdjustment());
  return graph;
}

}  // namespace thimble
