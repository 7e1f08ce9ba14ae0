#include "thimble/graph/append_node.h"

#include <fmt/format.h>

#include <algorithm>

namespace thimble {
namespace {

Error NodeError(const NodeSpec& spec, const std::string& what) {
  return BadInput(spec.layer.empty()
                      ? fmt::format("{}: {}", spec.op, what)
                      : fmt::format("layer '{}' ({}): {}", spec.layer, spec.op, what));
}

Result<Attributes> CompleteAttributes(const OpDef& op, const NodeSpec& spec) {
  Attributes complete = op.default_attributes();
  for (const auto& [name, value] : spec.attributes.entries()) {
    const AttributeValue* known = complete.Find(name);
    if (known == nullptr) return NodeError(spec, fmt::format("no attribute '{}'", name));
    if (known->index() != value.index()) {
      return NodeError(spec, fmt::format("attribute '{}' has the wrong type", name));
    }
    complete.Set(name, value);
  }
  return complete;
}

Result<void> CheckInputs(const Graph& graph, const OpDef& op, const NodeSpec& spec) {
  if (!op.AcceptsInputs(spec.inputs.size())) {
    return NodeError(
        spec, fmt::format("got {} inputs, expected {}", spec.inputs.size(), op.inputs().size()));
  }
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Value& value = graph.value(spec.inputs[i]);
    const OpPort& port = op.InputPort(i);
    if (!port.Accepts(value.dtype)) {
      return NodeError(spec, fmt::format("input '{}' is {}, expected {}", port.name,
                                         Name(value.dtype), Name(port.dtype)));
    }
  }
  return {};
}

Result<void> CheckSizes(const NodeSpec& spec, const std::vector<Shape>& shapes) {
  for (const Shape& shape : shapes) {
    const auto elements = shape.CheckedElements();
    if (!elements || *elements > kMaxElements) {
      return NodeError(spec, fmt::format("a result of shape {} is too large", ToString(shape)));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ValueId>> AppendNode(Graph& graph, const OpRegistry& ops, NodeSpec spec) {
  const OpDef* op = ops.Find(spec.op);
  if (op == nullptr) return NodeError(spec, "unknown op");
  THIMBLE_TRY(CheckInputs(graph, *op, spec));
  THIMBLE_ASSIGN_OR_RETURN(Attributes attributes, CompleteAttributes(*op, spec));

  std::vector<Shape> in_shapes;
  for (ValueId input : spec.inputs) in_shapes.push_back(graph.value(input).shape);
  auto shapes = op->InferShapes({in_shapes, {}, attributes});
  if (!shapes.ok()) return NodeError(spec, shapes.error().message);
  THIMBLE_CHECK(shapes->size() == op->outputs().size(),
                "the shape rule of '{}' returned a wrong number of shapes", op->name());
  THIMBLE_TRY(CheckSizes(spec, *shapes));

  const NodeId id(graph.nodes.size());
  Node node{op->name(), spec.inputs, {}, std::move(attributes), spec.phase, spec.layer};
  for (size_t i = 0; i < op->outputs().size(); ++i) {
    const OpPort& port = op->outputs()[i];
    std::string name = i < spec.output_names.size() ? spec.output_names[i] : "";
    if (name.empty()) {
      name = fmt::format("{}.{}", spec.layer.empty() ? op->name() : spec.layer, port.name);
    }
    node.outputs.push_back(graph.AddValue(
        {graph.UniqueName(name), (*shapes)[i], port.dtype, spec.output_role, id, {}}));
  }
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().outputs;
}

Result<void> AppendUpdateNode(Graph& graph, const OpRegistry& ops, NodeSpec spec,
                              const std::vector<ValueId>& carried) {
  spec.phase = Phase::kUpdate;
  return AppendCarryingNode(graph, ops, std::move(spec), carried);
}

Result<void> AppendCarryingNode(Graph& graph, const OpRegistry& ops, NodeSpec spec,
                                const std::vector<ValueId>& carried) {
  spec.output_names.resize(std::max(spec.output_names.size(), carried.size()));
  for (size_t i = 0; i < carried.size(); ++i) {
    if (!carried[i].valid()) continue;
    spec.output_names[i] = graph.value(FirstVersion(graph, carried[i])).name + ".next";
  }
  THIMBLE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AppendNode(graph, ops, std::move(spec)));
  for (size_t i = 0; i < carried.size(); ++i) {
    if (!carried[i].valid()) continue;
    graph.values[outputs[i].index()].role = graph.value(carried[i]).role;
    graph.values[outputs[i].index()].packed = graph.value(carried[i]).packed;
    graph.carries.push_back({carried[i], outputs[i]});
  }
  return {};
}

Result<void> InferOutputShapes(Graph& graph, const OpRegistry& ops, NodeId id) {
  const Node& node = graph.node(id);
  const NodeShapes shapes(graph, node);
  auto inferred = ops.Get(node.op).InferShapes({shapes.inputs, {}, node.attributes});
  if (!inferred.ok()) return WithContext(fmt::format("layer '{}'", node.layer), inferred.error());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    graph.values[node.outputs[i].index()].shape = (*inferred)[i];
  }
  return {};
}

NodeShapes::NodeShapes(const Graph& graph, const Node& node) : attributes(node.attributes) {
  for (ValueId id : node.inputs) {
    inputs.push_back(graph.value(id).shape);
    input_types.push_back(graph.value(id).dtype);
    has_packed |= graph.value(id).is_packed();
  }
  for (ValueId id : node.outputs) {
    outputs.push_back(graph.value(id).shape);
    output_types.push_back(graph.value(id).dtype);
    has_packed |= graph.value(id).is_packed();
  }
}

}  // namespace thimble
