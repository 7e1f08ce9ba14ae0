#include "thimble/graph/remove_nodes.h"

namespace thimble {
namespace {

// Maps old ids to new ones; invalid for what is removed.
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

}  // namespace

std::vector<int> CountReaders(const Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (ValueId input : node.inputs) ++readers[input.index()];
  }
  for (ValueId output : graph.outputs) ++readers[output.index()];
  return readers;
}

void RemoveNodes(Graph& graph, const std::vector<bool>& removed_nodes,
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
    rename(value.packed.pool);
    rename(value.packed.pattern);
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

}  // namespace thimble
