#include "thimble/graph/verify_graph.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "thimble/graph/append_node.h"
#include "thimble/graph/verify_packed.h"

namespace thimble {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, const OpRegistry& ops) : graph_(graph), ops_(ops) {}

  Result<void> Run() {
    THIMBLE_TRY(CheckNames());
    THIMBLE_TRY(CheckSizes());
    written_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      written_[i] = !graph_.values[i].producer.valid();
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) THIMBLE_TRY(CheckNode(NodeId(i)));
    THIMBLE_TRY(CheckCarries());
    THIMBLE_TRY(CheckVersionsInTime());
    for (ValueId output : graph_.outputs) THIMBLE_TRY(CheckId(output, "output"));
    THIMBLE_TRY(CheckProducers());
    return VerifyPacked(graph_);
  }

 private:
  static Error Wrong(const std::string& what) { return BadInput("graph: " + what); }

  Result<void> CheckNames() const {
    std::set<std::string_view> names;
    for (const Value& value : graph_.values) {
      if (!names.insert(value.name).second) {
        return Wrong(fmt::format("two values are named '{}'", value.name));
      }
    }
    return {};
  }

  // Sizes of inputs and parameters come from model files; after this check, products cannot
  // overflow.
  Result<void> CheckSizes() const {
    for (const Value& value : graph_.values) {
      const auto elements = value.shape.CheckedElements();
      if (!elements || *elements > kMaxElements) {
        return Wrong(
            fmt::format("'{}' of shape {} is too large", value.name, ToString(value.shape)));
      }
    }
    return {};
  }

  // Shape rules may read exactly the attributes of the op.
  static Result<void> CheckAttributes(const Node& node, const OpDef& op) {
    const auto& expected = op.default_attributes().entries();
    const auto& actual = node.attributes.entries();
    bool same = actual.size() == expected.size();
    for (size_t i = 0; same && i < expected.size(); ++i) {
      same = actual[i].first == expected[i].first &&
             actual[i].second.index() == expected[i].second.index();
    }
    if (same) return {};
    return Wrong(fmt::format("{}: attributes are '{}', expected '{}'", node.op,
                             ToString(node.attributes), ToString(op.default_attributes())));
  }

  Result<void> CheckId(ValueId id, std::string_view where) const {
    if (!id.valid() || id.index() >= graph_.values.size()) {
      return Wrong(fmt::format("{} refers to no value", where));
    }
    return {};
  }

  Result<void> CheckNode(NodeId id) {
    const Node& node = graph_.node(id);
    const OpDef* op = ops_.Find(node.op);
    if (op == nullptr) return Wrong(fmt::format("node {}: unknown op '{}'", id.index(), node.op));
    if (!op->AcceptsInputs(node.inputs.size()) || node.outputs.size() != op->outputs().size()) {
      return Wrong(
          fmt::format("node {} ({}): wrong number of inputs or outputs", id.index(), node.op));
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      THIMBLE_TRY(CheckId(node.inputs[i], node.op));
      const Value& value = graph_.value(node.inputs[i]);
      if (!written_[node.inputs[i].index()]) {
        return Wrong(fmt::format("node {} ({}) reads '{}' before it is written", id.index(),
                                 node.op, value.name));
      }
      if (!op->InputPort(i).Accepts(value.dtype)) {
        return Wrong(
            fmt::format("node {} ({}): '{}' has the wrong type", id.index(), node.op, value.name));
      }
    }
    return CheckOutputs(id, *op);
  }

  Result<void> CheckOutputs(NodeId id, const OpDef& op) {
    const Node& node = graph_.node(id);
    for (ValueId output : node.outputs) THIMBLE_TRY(CheckId(output, node.op));
    THIMBLE_TRY(CheckAttributes(node, op));
    const NodeShapes shapes(graph_, node);
    const auto expected = op.InferShapes({shapes.inputs, {}, node.attributes});
    if (!expected.ok()) return expected.error();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = graph_.value(node.outputs[i]);
      if (written_[node.outputs[i].index()] || value.producer != id) {
        return Wrong(fmt::format("'{}' is written twice, or not by its producer", value.name));
      }
      if (value.shape != (*expected)[i] || !op.outputs()[i].Accepts(value.dtype)) {
        return Wrong(fmt::format("'{}' has shape {}, expected {} from its op", value.name,
                                 ToString(value.shape), ToString((*expected)[i])));
      }
      written_[node.outputs[i].index()] = true;
    }
    return {};
  }

  Result<void> CheckCarries() {
    next_.assign(graph_.values.size(), {});
    previous_.assign(graph_.values.size(), {});
    for (const Carry& carry : graph_.carries) {
      THIMBLE_TRY(CheckId(carry.from, "carry"));
      THIMBLE_TRY(CheckId(carry.to, "carry"));
      const Value& from = graph_.value(carry.from);
      const Value& to = graph_.value(carry.to);
      if (!IsPersistent(from.role) || !to.producer.valid() || from.role != to.role ||
          from.shape != to.shape || from.dtype != to.dtype) {
        return Wrong(
            fmt::format("carry '{}' -> '{}': expected a persistent value and a computed one "
                        "of the same role, shape and type",
                        from.name, to.name));
      }
      if (next_[carry.from.index()].valid()) {
        return Wrong(fmt::format("'{}' has two next versions, '{}' and '{}'", from.name,
                                 graph_.value(next_[carry.from.index()]).name, to.name));
      }
      if (previous_[carry.to.index()].valid()) {
        return Wrong(fmt::format("'{}' is the next version of two values", to.name));
      }
      next_[carry.from.index()] = carry.to;
      previous_[carry.to.index()] = carry.from;
    }
    return CheckChains();
  }

  // Each value has at most one previous and one next version. So a value that no chain from a value
  // without a producer reaches is on a cycle, or its chain begins at a computed value.
  Result<void> CheckChains() {
    in_chain_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (graph_.values[i].producer.valid()) continue;
      for (ValueId version = next_[i]; version.valid(); version = next_[version.index()]) {
        in_chain_[version.index()] = true;
      }
    }
    for (const Carry& carry : graph_.carries) {
      if (in_chain_[carry.to.index()]) continue;
      return Wrong(fmt::format(
          "carry '{}' -> '{}' is not in a chain that begins at a value without a producer",
          graph_.value(carry.from).name, graph_.value(carry.to).name));
    }
    return {};
  }

  // In node order, phase by phase: an overwritten version is not read any more, and versions are
  // written in sequence.
  Result<void> CheckVersionsInTime() {
    overwritten_by_.assign(graph_.values.size(), {});
    for (Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      for (size_t i = 0; i < graph_.nodes.size(); ++i) {
        if (graph_.nodes[i].phase == phase) THIMBLE_TRY(CheckVersionsOf(NodeId(i)));
      }
    }
    return {};
  }

  Result<void> CheckVersionsOf(NodeId id) {
    const Node& node = graph_.node(id);
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (ValueId value : *values) {
        const ValueId next = overwritten_by_[value.index()];
        if (!next.valid()) continue;
        return Wrong(fmt::format("node {} ({}) {} '{}' after '{}' was written over it", id.index(),
                                 node.op, values == &node.inputs ? "reads" : "writes",
                                 graph_.value(value).name, graph_.value(next).name));
      }
    }
    for (ValueId output : node.outputs) {
      const ValueId previous = previous_[output.index()];
      if (previous.valid()) overwritten_by_[previous.index()] = output;
    }
    return {};
  }

  Result<void> CheckProducers() const {
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!written_[i]) return Wrong(fmt::format("'{}' is never written", value.name));
      const bool from_outside = IsPersistent(value.role) || value.role == Role::kInput;
      const bool next_version = IsPersistent(value.role) && value.producer.valid() && in_chain_[i];
      if (from_outside == value.producer.valid() && !next_version) {
        return Wrong(fmt::format("'{}' ({}) must {} computed by a node", value.name,
                                 Name(value.role), value.producer.valid() ? "not be" : "be"));
      }
    }
    return {};
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  std::vector<bool> written_;
  std::vector<ValueId> next_;            // by value: its next version
  std::vector<ValueId> previous_;        // by value: the version before
  std::vector<bool> in_chain_;           // by value: a later version in a chain with a beginning
  std::vector<ValueId> overwritten_by_;  // by value: its next version, once that is written
};

}  // namespace

Result<void> VerifyGraph(const Graph& graph, const OpRegistry& ops) {
  return Verifier(graph, ops).Run();
}

}  // namespace thimble
