#include "thimble/program/sparsity/pack_graph.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "thimble/grad/sgd.h"
#include "thimble/grad/training_graph.h"
#include "thimble/graph/append_node.h"
#include "thimble/graph/remove_nodes.h"

namespace thimble {
namespace {

constexpr std::string_view kGradientOp = "conv2d_grad_weight";
constexpr std::string_view kCheckOp = "check_gradients";

// The gradient of a parameter; invalid if the graph has none.
ValueId GradientOf(const Graph& graph, ValueId parameter) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.role != Role::kGradient || value.gradient_of != parameter) continue;
    if (graph.node(value.producer).op == kGradientOp) return ValueId(i);
  }
  return {};
}

std::vector<size_t> ReadersOf(const Graph& graph, ValueId value) {
  std::vector<size_t> readers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (std::ranges::count(graph.nodes[i].inputs, value) > 0) readers.push_back(i);
  }
  return readers;
}

// The node that computes what `gradient` computes and uses it as `use` does.
Node FusedUse(const Node& gradient, DType gradient_type, const Node& use) {
  Node fused = use;
  fused.op = "conv2d_" + use.op;
  std::erase(fused.inputs, gradient.outputs[0]);
  fused.inputs.insert(fused.inputs.begin(), gradient.inputs.begin(), gradient.inputs.end());
  for (const auto& [name, value] : gradient.attributes.entries()) {
    fused.attributes.Set(name, value);
  }
  fused.attributes.Set("gradient_type", static_cast<int64_t>(gradient_type));
  return fused;
}

// Adds the values that all graphs share, as they are needed.
class TensorPacker {
 public:
  TensorPacker(Graph& graph, const SparseTensors& tensors) : graph_(graph), tensors_(tensors) {
    for (size_t i = 0; i < graph.values.size(); ++i) {
      versions_[FirstVersion(graph, ValueId(i))].emplace_back(i);
    }
  }

  void Pack(size_t tensor) {
    const std::string& name = tensors_.tensors[tensor].name;
    const ValueId parameter = graph_.Find(name);
    if (!parameter.valid()) return;
    const ValueId gradient = GradientOf(graph_, parameter);
    PackIn(kSparseWeights, parameter, tensor, Role::kParameter);
    PackIn(kSparseMomentum, graph_.Find(kMomentumPrefix + name), tensor, Role::kState);
    PackIn(kSparseGradients, graph_.Find(kSumPrefix + name), tensor, Role::kAccumulator);
    PackIn(kSparseGradients, gradient, tensor, Role::kAccumulator);
  }

 private:
  void PackIn(const char* pool, ValueId first, size_t tensor, Role role) {
    if (!first.valid()) return;
    const DType dtype = graph_.value(first).dtype;
    const auto num_tensors = static_cast<int64_t>(tensors_.tensors.size());
    const PackedIn packed{
        .pool = Shared(pool, {PoolNumbers(dtype, tensors_.active, num_tensors)}, dtype, role),
        .pattern =
            Shared(kSparsePattern, {PatternWords(tensors_.blocks)}, DType::kI32, Role::kStatistic),
        .first_block = tensors_.tensors[tensor].first_block,
        .tensor = static_cast<int64_t>(tensor)};
    for (const ValueId version : versions_.at(first)) {
      graph_.values[version.index()].packed = packed;
    }
  }

  ValueId Shared(const char* name, Shape shape, DType dtype, Role role) {
    const ValueId known = graph_.Find(name);
    return known.valid() ? known : graph_.AddValue({name, shape, dtype, role, {}, {}});
  }

  Graph& graph_;
  const SparseTensors& tensors_;
  std::map<ValueId, std::vector<ValueId>> versions_;  // by first version
};

// A value of the same name, as a whole.
ValueId CopyWhole(const Graph& from, const char* name, Graph& to) {
  Value value = from.value(from.Find(name));
  value.producer = {};
  return to.AddValue(std::move(value));
}

}  // namespace

void FuseGradientUses(Graph& graph, const SparseTensors& tensors) {
  std::vector<bool> removed_nodes(graph.nodes.size(), false);
  std::vector<bool> removed_values(graph.values.size(), false);
  for (const SparseTensor& tensor : tensors.tensors) {
    const ValueId parameter = graph.Find(tensor.name);
    if (!parameter.valid()) continue;
    const ValueId gradient = GradientOf(graph, parameter);
    if (!gradient.valid()) continue;
    std::vector<size_t> uses = ReadersOf(graph, gradient);
    std::vector<size_t> checks;
    std::erase_if(uses, [&](size_t node) {
      if (graph.nodes[node].op == kCheckOp) checks.push_back(node);
      return graph.nodes[node].op == kCheckOp;
    });
    if (uses.size() != 1 || graph.nodes[uses[0]].phase != Phase::kBackward) continue;
    const NodeId producer = graph.value(gradient).producer;
    const ValueId dy = graph.node(producer).inputs[1];
    for (const size_t check : checks) {
      std::ranges::replace(graph.nodes[check].inputs, gradient, dy);
    }
    graph.nodes[uses[0]] =
        FusedUse(graph.node(producer), graph.value(gradient).dtype, graph.nodes[uses[0]]);
    removed_nodes[producer.index()] = true;
    removed_values[gradient.index()] = true;
  }
  RemoveNodes(graph, removed_nodes, removed_values);
}

void PackTensors(Graph& graph, const SparseTensors& tensors) {
  TensorPacker packer(graph, tensors);
  for (size_t tensor = 0; tensor < tensors.tensors.size(); ++tensor) packer.Pack(tensor);
}

Result<Graph> MakeRewiring(const Graph& trained, const OpRegistry& ops,
                           const SparseTensors& tensors, const RewiringSpec& spec) {
  Graph graph;
  const bool has_momentum = trained.Find(kSparseMomentum).valid();
  std::vector<ValueId> carried = {CopyWhole(trained, kSparsePattern, graph),
                                  CopyWhole(trained, kSparseWeights, graph)};
  if (has_momentum) carried.push_back(CopyWhole(trained, kSparseMomentum, graph));
  carried.push_back(graph.AddValue({kSparseThreshold, {1}, DType::kF32, Role::kState, {}, {}}));
  std::vector<ValueId> inputs = carried;
  inputs.push_back(graph.AddValue({kUpdateInput, {1}, DType::kI32, Role::kInput, {}, {}}));
  std::vector<int64_t> elements;
  for (const SparseTensor& tensor : tensors.tensors) elements.push_back(tensor.elements);
  const double fraction =
      std::min(1.0, static_cast<double>(spec.quota) / static_cast<double>(tensors.active));
  THIMBLE_TRY(AppendUpdateNode(graph, ops,
                               {.op = has_momentum ? "rewire" : "rewire_plain",
                                .inputs = inputs,
                                .attributes = {{"tensors", elements},
                                               {"method", int64_t{spec.is_set}},
                                               {"quota", spec.quota},
                                               {"fraction", fraction},
                                               {"seed", static_cast<int64_t>(spec.seed)}},
                                .layer = "sparse"},
                               carried));
  for (const Carry& carry : graph.carries) {
    graph.values[carry.to.index()].dtype = graph.value(carry.from).dtype;
  }
  const ValueId moved = graph.nodes.back().outputs.back();
  graph.values[moved.index()].name = kSparseMoved;
  graph.outputs.push_back(moved);
  return graph;
}

}  // namespace thimble
