// Training graphs whose weights change in backward, for tests of state that changes while other
// nodes still have to read it.
#pragma once

#include <algorithm>
#include <vector>

#include "thimble/graph/graph.h"

namespace thimble {

// The same graph with all updates of weights in the backward phase, each right after the last node
// that it has to wait for: those that make its gradient and those that read the old weight.
inline Graph UpdateInBackward(Graph graph) {
  std::vector<bool> placed(graph.nodes.size(), false);
  std::vector<bool> moves(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    moves[i] =
        node.phase == Phase::kUpdate && graph.value(node.outputs[0]).role == Role::kParameter;
  }
  const auto reads = [&](size_t node, ValueId value) {
    const auto& inputs = graph.nodes[node].inputs;
    return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
  };
  const auto can_run = [&](size_t update) {
    for (ValueId input : graph.nodes[update].inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer.valid() && !placed[producer.index()]) return false;
      for (size_t other = 0; other < graph.nodes.size(); ++other) {
        const bool waits = IsPersistent(graph.value(input).role) && other != update;
        if (waits && !placed[other] && reads(other, input)) return false;
      }
    }
    return true;
  };
  std::vector<size_t> order;
  const auto place = [&](size_t node) {
    order.push_back(node);
    placed[node] = true;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (moves[i]) continue;
    place(i);
    for (size_t update = 0; update < graph.nodes.size(); ++update) {
      if (moves[update] && !placed[update] && can_run(update)) place(update);
    }
  }
  std::vector<Node> nodes;
  for (size_t index : order) {
    Node node = graph.nodes[index];
    if (moves[index]) node.phase = Phase::kBackward;
    for (ValueId output : node.outputs) {
      graph.values[output.index()].producer = NodeId(nodes.size());
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace thimble
