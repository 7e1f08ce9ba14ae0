#include "thimble/program/fold_norms/fold_norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/graph/remove_nodes.h"

namespace thimble {
namespace {

// The ops that read the input of a convolution, first.
constexpr std::array<std::string_view, 7> kReaders = {"conv2d",
                                                      "conv2d_add",
                                                      "conv2d_grad_weight",
                                                      "conv2d_accumulate",
                                                      "conv2d_sgd_gather",
                                                      "conv2d_sgd_update",
                                                      "conv2d_sgd_update_plain"};

// The inputs of batch_norm_grad: x, gamma, beta, mean, variance, dy, other.
constexpr size_t kGradientInput = 5;

class NormFolder {
 public:
  explicit NormFolder(Graph& graph)
      : graph_(graph), removed_nodes_(graph.nodes.size()), removed_values_(graph.values.size()) {
    readers_.resize(graph.values.size());
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      for (const ValueId input : graph.nodes[node].inputs) readers_[input.index()].push_back(node);
    }
  }

  FoldedNorms Fold() {
    FoldedNorms folded;
    for (size_t node = 0; node < graph_.nodes.size(); ++node) {
      folded.norms += FoldNorm(node) ? 1 : 0;
      folded.gradients += FoldGradient(node) ? 1 : 0;
    }
    RemoveNodes(graph_, removed_nodes_, removed_values_);
    return folded;
  }

 private:
  bool IsF16(ValueId value) const { return graph_.value(value).dtype == DType::kF16; }
  bool IsOutput(ValueId value) const { return std::ranges::count(graph_.outputs, value) > 0; }

  bool FoldNorm(size_t index) {
    Node& norm = graph_.nodes[index];
    const bool measures = norm.op == "batch_norm";
    if (!measures && norm.op != "batch_norm_eval") return false;
    const ValueId y = norm.outputs[0];
    if (norm.attributes.Int("group") != 0 || !IsF16(norm.inputs[0]) || !IsF16(y)) return false;
    if (!HasOnlyConvolutions(y)) return false;
    std::vector<ValueId> replacement = {norm.inputs[0], norm.inputs[1], norm.inputs[2]};
    const auto statistics = measures ? norm.outputs.begin() + 1 : norm.inputs.begin() + 3;
    replacement.insert(replacement.end(), statistics, statistics + 2);
    for (const size_t reader : readers_[y.index()]) ReadThrough(norm, replacement, reader);
    if (measures) {
      const int64_t group = 0;
      norm = {.op = "batch_norm_statistics",
              .inputs = {norm.inputs[0]},
              .outputs = {norm.outputs[1], norm.outputs[2]},
              .attributes = {{"group", group}},
              .phase = norm.phase,
              .layer = norm.layer};
    } else {
      removed_nodes_[index] = true;
    }
    removed_values_[y.index()] = true;
    return true;
  }

  bool HasOnlyConvolutions(ValueId y) const {
    const auto is_convolution = [&](size_t reader) {
      const Node& node = graph_.nodes[reader];
      return std::ranges::count(kReaders, node.op) > 0 && node.inputs[0] == y &&
             std::ranges::count(node.inputs, y) == 1;
    };
    return !IsOutput(y) && !readers_[y.index()].empty() &&
           std::ranges::all_of(readers_[y.index()], is_convolution);
  }

  void ReadThrough(const Node& norm, const std::vector<ValueId>& replacement, size_t reader) {
    Node& node = graph_.nodes[reader];
    const ValueId y = node.inputs[0];
    node.op = "norm_" + node.op;
    node.inputs.erase(node.inputs.begin());
    node.inputs.insert(node.inputs.begin(), replacement.begin(), replacement.end());
    node.attributes.Set("epsilon", norm.attributes.Float("epsilon"));
    node.attributes.Set("relu", norm.attributes.Int("relu"));
    node.attributes.Set("norm_type", static_cast<int64_t>(graph_.value(y).dtype));
  }

  // `index` is a norm's gradient. The gradient that it reads must be that of one convolution, or
  // the sum of two, and nothing else may read it. The new node takes the place of the (later)
  // convolution, so everything that it reads must be there, and still be there.
  bool FoldGradient(size_t index) {
    const Node norm = graph_.nodes[index];
    const bool adds = norm.op == "batch_norm_grad_add";
    if (!adds && norm.op != "batch_norm_grad") return false;
    if (norm.attributes.Int("group") != 0) return false;
    const ValueId between = norm.inputs[kGradientInput];
    std::vector<ValueId> parts = {between};
    size_t sum = graph_.nodes.size();
    if (!IsReadOnce(between) || !IsF16(between)) return false;
    if (const size_t producer = ProducerOf(between); graph_.nodes[producer].op == "add" && !adds) {
      sum = producer;
      parts = graph_.nodes[sum].inputs;
    }
    size_t place = 0;
    for (const ValueId part : parts) {
      if (!IsReadOnce(part) || !IsF16(part)) return false;
      if (graph_.nodes[ProducerOf(part)].op != "conv2d_grad_input") return false;
      place = std::max(place, ProducerOf(part));
    }
    Node folded = FoldedGradient(norm, parts);
    if (!std::ranges::all_of(folded.inputs, [&](ValueId v) { return IsThere(v, place); })) {
      return false;
    }
    for (const ValueId part : parts) {
      removed_nodes_[ProducerOf(part)] = true;
      removed_values_[part.index()] = true;
    }
    if (sum < graph_.nodes.size()) {
      removed_nodes_[sum] = true;
      removed_values_[between.index()] = true;
    }
    removed_nodes_[index] = true;
    removed_nodes_[place] = false;
    for (const ValueId output : norm.outputs)
      graph_.values[output.index()].producer = NodeId(place);
    graph_.nodes[place] = std::move(folded);
    return true;
  }

  Node FoldedGradient(const Node& norm, const std::vector<ValueId>& parts) const {
    const Node& first = graph_.nodes[ProducerOf(parts[0])];
    Node folded{
        .op = "norm_conv2d_grad_input",
        .inputs = first.inputs,
        .outputs = norm.outputs,
        .attributes = {{"stride", first.attributes.Int("stride")},
                       {"padding", first.attributes.Int("padding")},
                       {"epsilon", norm.attributes.Float("epsilon")},
                       {"relu", norm.attributes.Int("relu")},
                       {"group", norm.attributes.Int("group")},
                       {"gradient_type", static_cast<int64_t>(graph_.value(parts[0]).dtype)}},
        .phase = norm.phase,
        .layer = first.layer};
    for (size_t i = 0; i < norm.inputs.size(); ++i) {
      if (i != kGradientInput) folded.inputs.push_back(norm.inputs[i]);
    }
    if (parts.size() > 1) {
      const Node& second = graph_.nodes[ProducerOf(parts[1])];
      folded.op = "norm_conv2d_grad_input_pair";
      folded.inputs.insert(folded.inputs.end(), second.inputs.begin(), second.inputs.end());
      folded.attributes.Set("second_stride", second.attributes.Int("stride"));
      folded.attributes.Set("second_padding", second.attributes.Int("padding"));
    }
    return folded;
  }

  bool IsReadOnce(ValueId value) const {
    return readers_[value.index()].size() == 1 && !IsOutput(value) &&
           graph_.value(value).producer.valid();
  }
  size_t ProducerOf(ValueId value) const { return graph_.value(value).producer.index(); }
  // Whether a node at this place can read the value: it has been made, and is not overwritten.
  bool IsThere(ValueId value, size_t place) const {
    const NodeId producer = graph_.value(value).producer;
    if (producer.valid() && producer.index() > place) return false;
    return std::ranges::none_of(graph_.carries, [&](const Carry& carry) {
      return carry.from == value && ProducerOf(carry.to) < place;
    });
  }

  Graph& graph_;
  std::vector<bool> removed_nodes_;
  std::vector<bool> removed_values_;
  std::vector<std::vector<size_t>> readers_;  // by value: nodes
};

const Lever& FoldNormsLever() {
  static const Lever lever{
      .name = "fold-norms",
      .takes = {},
      .help = "let convolutions normalise their input while they read it (CPU, fp16)",
      .what = "read through batch norms, whose outputs take no memory",
      .plain = "false",
      .training_only = true,
      .budget_steps = [](const LeverSetting& setting) -> std::vector<LeverStep> {
        if (setting.value != "false" || setting.device != DeviceKind::kCpu) return {};
        return {{"true"}};
      }};
  return lever;
}

class FoldNormsTechnique final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "fold-norms", .what = FoldNormsLever().what};
  }
  const Lever* lever() const override { return &FoldNormsLever(); }
  Result<std::string> ChangeProgram(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                    const UpdateSpec& /*update*/,
                                    std::vector<NamedGraph>& graphs) const override {
    FoldedNorms most;
    for (NamedGraph& graph : graphs) {
      const FoldedNorms folded = FoldNorms(graph.graph);
      if (folded.norms + folded.gradients > most.norms + most.gradients) most = folded;
    }
    if (most.norms + most.gradients == 0) {
      return std::string("nothing: no batch norm of all samples in fp16 before a convolution");
    }
    return fmt::format("norms read through: {}; their gradients: {}", most.norms, most.gradients);
  }
};

}  // namespace

FoldedNorms FoldNorms(Graph& graph) { return NormFolder(graph).Fold(); }

std::unique_ptr<const Technique> MakeFoldNorms() { return std::make_unique<FoldNormsTechnique>(); }

}  // namespace thimble
