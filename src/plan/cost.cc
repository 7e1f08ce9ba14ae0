#include "thimble/plan/cost.h"

#include "thimble/graph/append_node.h"

namespace thimble {

NodeCost CostOf(const Graph& graph, const OpRegistry& ops, const Node& node) {
  const NodeShapes shapes(graph, node);
  NodeCost cost{ops.Get(node.op).CountFlops(shapes.call()), 0};
  for (ValueId id : node.inputs) cost.bytes += static_cast<int64_t>(graph.value(id).size_bytes());
  for (ValueId id : node.outputs) cost.bytes += static_cast<int64_t>(graph.value(id).size_bytes());
  return cost;
}

bool RebuildsValues(const Graph& graph, const Node& node) {
  return node.phase == Phase::kBackward && !node.outputs.empty() &&
         graph.value(node.outputs[0]).role == Role::kActivation;
}

GraphCost CostOf(const Graph& graph, const OpRegistry& ops) {
  GraphCost cost;
  for (const Node& node : graph.nodes) {
    const int64_t flops = CostOf(graph, ops, node).flops;
    cost.step_flops += flops;
    if (node.phase == Phase::kForward) cost.forward_flops += flops;
    if (RebuildsValues(graph, node)) cost.recompute_flops += flops;
  }
  return cost;
}

}  // namespace thimble
