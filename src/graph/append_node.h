// Appends nodes to a graph: fills in default attributes, checks types, infers shapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

struct NodeSpec {
  std::string_view op;
  std::vector<ValueId> inputs = {};
  Attributes attributes = {};  // missing ones take the op's defaults
  Phase phase = Phase::kForward;
  std::string layer = {};
  Role output_role = Role::kActivation;
  // Names of the outputs; missing or empty ones become "<layer or op>.<port>", made unique.
  std::vector<std::string> output_names = {};
};

// Returns the outputs. Fails, naming the layer, if shapes do not match, the op or an attribute is
// unknown, or the number or type of inputs is wrong (model files can cause all of these).
Result<std::vector<ValueId>> AppendNode(Graph& graph, const OpRegistry& ops, NodeSpec spec);

// Appends a node whose output i is the next version of carried[i], and records the carries. A
// carried value is persistent, or the last version of a persistent value (LastVersion). Versions
// are named after the first: "pool.next", "pool.next.2", …. Outputs without a carried value (an
// invalid id, or beyond the end of `carried`) are like those of AppendNode.
Result<void> AppendCarryingNode(Graph& graph, const OpRegistry& ops, NodeSpec spec,
                                const std::vector<ValueId>& carried);
// The same for a node of the update phase.
Result<void> AppendUpdateNode(Graph& graph, const OpRegistry& ops, NodeSpec spec,
                              const std::vector<ValueId>& carried);

// Infers the shapes of a node's outputs again, after its attributes changed.
Result<void> InferOutputShapes(Graph& graph, const OpRegistry& ops, NodeId node);

// The shapes and types of a node's inputs and outputs, as arguments for the functions of its OpDef.
struct NodeShapes {
  NodeShapes(const Graph& graph, const Node& node);
  OpCall call() const {
    return {inputs, outputs, attributes, input_types, output_types, has_packed};
  }

  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
  std::vector<DType> input_types;
  std::vector<DType> output_types;
  bool has_packed = false;
  const Attributes& attributes;
};

}  // namespace thimble
