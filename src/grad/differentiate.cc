#include "thimble/grad/differentiate.h"

#include <fmt/format.h>

#include <optional>

#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

// One run of Differentiate; also the GradientBuilder that rules get for the current node.
class Differentiator final : public GradientBuilder {
 public:
  Differentiator(Graph& graph, const OpRegistry& ops) : graph_(graph), ops_(ops) {}

  Result<std::vector<ValueId>> Run(const std::vector<GradientSeed>& seeds,
                                   const std::vector<ValueId>& wrt) {
    const size_t num_values = graph_.values.size();
    const size_t num_nodes = graph_.nodes.size();
    MarkWanted(wrt);
    gradients_.assign(num_values, {});
    for (const GradientSeed& seed : seeds) AddPart(seed.of, seed.gradient);
    for (size_t index = num_nodes; index-- > 0;) THIMBLE_TRY(VisitNode(NodeId(index)));

    std::vector<ValueId> result;
    for (ValueId value : wrt) {
      if (!gradients_[value.index()].valid()) {
        return BadInput(fmt::format("'{}' has no influence on the loss", graph_.value(value).name));
      }
      result.push_back(gradients_[value.index()]);
    }
    return result;
  }

  ValueId In(std::string_view input) const override {
    return graph_.node(node_).inputs[op_->InputIndex(input)];
  }
  ValueId Out(std::string_view output) const override {
    return graph_.node(node_).outputs[op_->OutputIndex(output)];
  }
  ValueId GradOf(std::string_view output) const override {
    THIMBLE_CHECK(HasGrad(output), "output '{}' of '{}' has no gradient", output, op_->name());
    return gradients_[Out(output).index()];
  }
  bool HasGrad(std::string_view output) const override {
    return gradients_[Out(output).index()].valid();
  }
  bool Wants(std::string_view input) const override {
    const bool given = op_->InputIndex(input) < graph_.node(node_).inputs.size();
    return given && wanted_[In(input).index()];
  }
  const Attributes& attributes() const override { return graph_.node(node_).attributes; }
  const Shape& ShapeOf(ValueId value) const override { return graph_.value(value).shape; }

  std::vector<ValueId> Emit(std::string_view op, std::vector<ValueId> inputs,
                            Attributes attributes) override {
    auto outputs = AppendNode(graph_, ops_,
                              {op,
                               std::move(inputs),
                               std::move(attributes),
                               Phase::kBackward,
                               graph_.node(node_).layer,
                               Role::kGradient,
                               {}});
    if (!outputs.ok()) {
      if (!failure_) failure_ = outputs.error();
      // An earlier error: any ids let the rule continue; its result is discarded.
      return std::vector<ValueId>(ops_.Get(op).outputs().size(), ValueId(0));
    }
    return *outputs;
  }

  void AddTo(std::string_view input, ValueId gradient) override {
    if (!failure_ && Wants(input)) AddPart(In(input), gradient);
  }
  ValueId SumSoFar(std::string_view input) const override {
    return Wants(input) ? gradients_[In(input).index()] : ValueId();
  }
  void Replace(std::string_view input, ValueId sum) override {
    if (failure_ || !Wants(input)) return;
    gradients_[In(input).index()] = {};
    AddPart(In(input), sum);
  }

 private:
  // Marks the values that depend on some entry of `wrt`: their gradients are needed.
  void MarkWanted(const std::vector<ValueId>& wrt) {
    wanted_.assign(graph_.values.size(), false);
    for (ValueId value : wrt) wanted_[value.index()] = true;
    for (const Node& node : graph_.nodes) {
      bool any = false;
      for (ValueId input : node.inputs) any = any || wanted_[input.index()];
      if (!any) continue;
      for (ValueId output : node.outputs) wanted_[output.index()] = true;
    }
  }

  void AddPart(ValueId value, ValueId part) {
    ValueId& sum = gradients_[value.index()];
    const std::string name = graph_.value(value).name;
    if (sum.valid()) {
      auto added = AppendNode(
          graph_, ops_,
          {"add", {sum, part}, {}, Phase::kBackward, LayerOf(graph_, value), Role::kGradient, {}});
      THIMBLE_CHECK(added.ok(), "parts of the gradient of '{}' differ in shape", name);
      sum = added->front();
    } else {
      sum = part;
    }
    // A sum passes its gradient on unchanged, so one value may be the gradient of several: the
    // first one names it.
    Value& gradient = graph_.values[sum.index()];
    if (!gradient.gradient_of.valid() && gradient.producer.valid()) {
      gradient.gradient_of = value;
      gradient.name.clear();
      gradient.name = graph_.UniqueName("d" + name);
    }
  }

  Result<void> VisitNode(NodeId id) {
    node_ = id;
    op_ = &ops_.Get(graph_.node(id).op);
    bool arrives = false;
    for (ValueId output : graph_.node(id).outputs) {
      arrives = arrives || (gradients_[output.index()].valid() && wanted_[output.index()]);
    }
    if (!arrives) return {};
    if (!op_->gradient()) {
      return BadInput(fmt::format("layer '{}': op '{}' has no gradient: {}", graph_.node(id).layer,
                                  op_->name(), op_->no_gradient_reason()));
    }
    op_->gradient()(*this);
    if (failure_) return *failure_;
    return {};
  }

  Graph& graph_;
  const OpRegistry& ops_;
  std::vector<bool> wanted_;
  std::vector<ValueId> gradients_;  // by value; invalid if none was added yet
  NodeId node_;
  const OpDef* op_ = nullptr;
  std::optional<Error> failure_;
};

}  // namespace

Result<std::vector<ValueId>> Differentiate(Graph& graph, const OpRegistry& ops,
                                           const std::vector<GradientSeed>& seeds,
                                           const std::vector<ValueId>& wrt) {
  return Differentiator(graph, ops).Run(seeds, wrt);
}

}  // namespace thimble
