#include "thimble/plan/order/late_order.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace thimble {
namespace {

class LateOrder {
 public:
  LateOrder(const Graph& graph, const std::vector<NodeId>& order)
      : graph_(graph),
        in_(order),
        waits_for_(graph.nodes.size()),
        is_end_(graph.nodes.size(), true),
        is_placed_(graph.nodes.size(), true),
        is_read_(graph.values.size(), false) {
    for (NodeId id : order) {
      if (!IsBackward(id)) continue;
      is_placed_[id.index()] = false;
      for (ValueId input : graph.node(id).inputs) AddEdge(graph.value(input).producer, id);
    }
    AddCarryEdges();
    // From the last to the first, so that all nodes that wait for a node are known.
    for (size_t i = order.size(); i-- > 0;) {
      const NodeId id = order[i];
      if (!IsBackward(id) || (is_end_[id.index()] && AddsUp(id))) continue;
      for (NodeId before : waits_for_[id.index()]) is_end_[before.index()] = false;
    }
  }

  std::vector<NodeId> Make() {
    for (NodeId id : in_) {
      if (IsBackward(id) && is_end_[id.index()]) ends_.push_back(id);
    }
    for (NodeId id : in_) {
      if (graph_.node(id).phase == Phase::kForward) out_.push_back(id);
    }
    for (NodeId id : Chain()) {
      PlaceEndsOf(id);
      Place(id);
    }
    PlaceEnds([](NodeId) { return true; });
    for (NodeId id : in_) {
      if (graph_.node(id).phase == Phase::kUpdate) out_.push_back(id);
    }
    return std::move(out_);
  }

 private:
  void AddEdge(NodeId before, NodeId after) {
    if (!before.valid() || before == after || !IsBackward(before) || !IsBackward(after)) return;
    waits_for_[after.index()].push_back(before);
  }

  // The next version of a value overwrites it: it is made after the old one, and all other readers
  // of the old one run before.
  void AddCarryEdges() {
    std::vector<NodeId> writer(graph_.values.size());  // of the next version, by value
    for (const Carry& carry : graph_.carries) {
      writer[carry.from.index()] = graph_.value(carry.to).producer;
      AddEdge(graph_.value(carry.from).producer, writer[carry.from.index()]);
    }
    for (NodeId id : in_) {
      for (ValueId input : graph_.node(id).inputs) {
        if (writer[input.index()].valid()) AddEdge(id, writer[input.index()]);
      }
    }
  }

  // Whether all outputs of the node are next versions of persistent values: sums of gradients over
  // the parts of a batch, updated weights.
  bool AddsUp(NodeId id) const {
    const auto& outputs = graph_.node(id).outputs;
    return std::all_of(outputs.begin(), outputs.end(),
                       [&](ValueId output) { return IsPersistent(graph_.value(output).role); });
  }

  bool IsBackward(NodeId id) const { return graph_.node(id).phase == Phase::kBackward; }

  // The nodes that other backward nodes need, each as late as these allow; of several that could be
  // last, the one with the fewest live bytes before it.
  std::vector<NodeId> Chain() const {
    std::vector<int> needed_by(graph_.nodes.size(), 0);
    std::vector<bool> alive(graph_.values.size(), false);
    std::vector<NodeId> ready;
    std::vector<NodeId> chain;
    for (NodeId id : in_) {
      if (!IsBackward(id) || is_end_[id.index()]) continue;
      for (NodeId before : waits_for_[id.index()]) ++needed_by[before.index()];
    }
    for (NodeId id : in_) {
      if (IsBackward(id) && !is_end_[id.index()] && needed_by[id.index()] == 0) ready.push_back(id);
    }
    while (!ready.empty()) {
      const auto best = std::min_element(ready.begin(), ready.end(), [&](NodeId a, NodeId b) {
        return std::pair(AddedBytes(a, alive), b) < std::pair(AddedBytes(b, alive), a);
      });
      const NodeId id = *best;
      ready.erase(best);
      chain.push_back(id);
      for (ValueId input : graph_.node(id).inputs) alive[input.index()] = true;
      for (ValueId output : graph_.node(id).outputs) alive[output.index()] = false;
      for (NodeId before : waits_for_[id.index()]) {
        if (--needed_by[before.index()] == 0) ready.push_back(before);
      }
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  // Live bytes before the node minus those after it.
  int64_t AddedBytes(NodeId id, const std::vector<bool>& alive) const {
    int64_t added = 0;
    for (ValueId input : graph_.node(id).inputs) added += alive[input.index()] ? 0 : Bytes(input);
    for (ValueId output : graph_.node(id).outputs) {
      added -= alive[output.index()] ? Bytes(output) : 0;
    }
    return added;
  }

  int64_t Bytes(ValueId value) const {
    const Value& v = graph_.value(value);
    return IsPersistent(v.role) ? 0 : static_cast<int64_t>(v.size_bytes());
  }

  void Place(NodeId id) {
    out_.push_back(id);
    is_placed_[id.index()] = true;
    for (ValueId input : graph_.node(id).inputs) is_read_[input.index()] = true;
    PlaceEnds([&](NodeId end) { return ReadsOnlyWhatWasRead(end); });
  }

  // Places the ends of the same layer that share an input gradient with this node.
  void PlaceEndsOf(NodeId id) {
    const Node& node = graph_.node(id);
    PlaceEnds([&](NodeId end) {
      const Node& other = graph_.node(end);
      return other.layer == node.layer &&
             std::any_of(other.inputs.begin(), other.inputs.end(), [&](ValueId input) {
               return IsGradient(input) &&
                      std::find(node.inputs.begin(), node.inputs.end(), input) != node.inputs.end();
             });
    });
  }

  template <class Condition>
  void PlaceEnds(Condition condition) {
    for (;;) {
      const auto found = std::find_if(ends_.begin(), ends_.end(),
                                      [&](NodeId end) { return CanRun(end) && condition(end); });
      if (found == ends_.end()) return;
      const NodeId id = *found;
      ends_.erase(found);
      Place(id);
    }
  }

  bool CanRun(NodeId id) const {
    const auto& before = waits_for_[id.index()];
    return std::all_of(before.begin(), before.end(),
                       [&](NodeId other) { return is_placed_[other.index()]; });
  }

  bool ReadsOnlyWhatWasRead(NodeId id) const {
    const auto& inputs = graph_.node(id).inputs;
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      return IsGradient(input) || !graph_.value(input).producer.valid() || is_read_[input.index()];
    });
  }

  bool IsGradient(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return producer.valid() && IsBackward(producer);
  }

  const Graph& graph_;
  const std::vector<NodeId>& in_;
  std::vector<std::vector<NodeId>> waits_for_;  // by node: backward nodes that run before it
  std::vector<bool> is_end_;  // by node: no backward node waits for it, or only accumulating ends
  std::vector<bool> is_placed_;  // by node; true outside backward
  std::vector<bool> is_read_;    // by value: by a backward node that is placed
  std::vector<NodeId> ends_;     // not placed yet
  std::vector<NodeId> out_;
};

}  // namespace

std::vector<NodeId> MakeLateOrder(const Graph& graph, const std::vector<NodeId>& order) {
  return LateOrder(graph, order).Make();
}

}  // namespace thimble
