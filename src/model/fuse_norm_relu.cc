#include "thimble/model/fuse_norm_relu.h"

#include <vector>

namespace thimble {
namespace {

bool IsNorm(const Node& node) { return node.op == "batch_norm" || node.op == "batch_norm_eval"; }

// How often each value is read, by nodes or by the caller.
std::vector<int> CountReaders(const Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (ValueId input : node.inputs) ++readers[input.index()];
  }
  for (ValueId output : graph.outputs) ++readers[output.index()];
  return readers;
}

// Ids of what is kept, by ids of before; invalid where it is not.
template <class Id>
std::vector<Id> Renumber(const std::vector<bool>& removed) {
  std::vector<Id> ids(removed.size());
  size_t next = 0;
  for (size_t index = 0; index < removed.size(); ++index) {
    if (!removed[index]) ids[index] = Id(next++);
  }
  return ids;
}

template <class T>
void Erase(std::vector<T>& elements, const std::vector<bool>& removed) {
  size_t index = 0;
  std::erase_if(elements, [&](const T&) { return removed[index++]; });
}

// Nobody may read, write or carry what is removed any more.
void Remove(Graph& graph, const std::vector<bool>& removed_nodes,
            const std::vector<bool>& removed_values) {
  const auto node_ids = Renumber<NodeId>(removed_nodes);
  const auto value_ids = Renumber<ValueId>(removed_values);
  const auto rename = [&](ValueId& id) {
    if (id.valid()) id = value_ids[id.index()];
  };
  Erase(graph.nodes, removed_nodes);
  Erase(graph.values, removed_values);
  for (Value& value : graph.values) {
    if (value.producer.valid()) value.producer = node_ids[value.producer.index()];
    rename(value.gradient_of);
  }
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) rename(input);
    for (ValueId& output : node.outputs) rename(output);
  }
  for (Carry& carry : graph.carries) {
    rename(carry.from);
    rename(carry.to);
  }
  for (ValueId& output : graph.outputs) rename(output);
}

}  // namespace

void FuseNormRelu(Graph& graph) {
  const std::vector<int> readers = CountReaders(graph);
  std::vector<bool> removed_nodes(graph.nodes.size(), false);
  std::vector<bool> removed_values(graph.values.size(), false);
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    Node& relu = graph.nodes[index];
    if (relu.op != "relu") continue;
    const ValueId between = relu.inputs[0];
    const NodeId producer = graph.value(between).producer;
    if (!producer.valid() || readers[between.index()] != 1) continue;
    Node& norm = graph.nodes[producer.index()];
    // Of the norm's outputs only y goes through ReLU.
    if (!IsNorm(norm) || norm.outputs[0] != between || norm.attributes.Int("relu") != 0) continue;
    norm.attributes.Set("relu", int64_t{1});
    norm.outputs[0] = relu.outputs[0];
    graph.values[relu.outputs[0].index()].producer = producer;
    removed_nodes[index] = true;
    removed_values[between.index()] = true;
  }
  Remove(graph, removed_nodes, removed_values);
}

}  // namespace thimble
