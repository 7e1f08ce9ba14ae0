#include "thimble/plan/passes/late_order.h"

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
        is_end_(graph.nodes.size(), true),
        is_made_(graph.values.size(), true),
        is_read_(graph.values.size(), false) {
    for (NodeId id : order) {
      if (!IsBackward(id)) continue;
      for (ValueId input : graph.node(id).inputs) {
        const NodeId producer = graph.value(input).producer;
        if (producer.valid() && !AddsUp(id)) is_end_[producer.index()] = false;
      }
      for (ValueId output : graph.node(id).outputs) is_made_[output.index()] = false;
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
  // Whether all that the node makes is the next version of something persistent: sums of gradients
  // over the parts of a batch.
  bool AddsUp(NodeId id) const {
    const auto& outputs = graph_.node(id).outputs;
    return std::all_of(outputs.begin(), outputs.end(),
                       [&](ValueId output) { return IsPersistent(graph_.value(output).role); });
  }

  bool IsBackward(NodeId id) const { return graph_.node(id).phase == Phase::kBackward; }

  // The nodes that others in backward need, each as late as those allow; of several that could come
  // last, the one with the fewest bytes alive in front of it.
  std::vector<NodeId> Chain() const {
    std::vector<int> needed_by(graph_.nodes.size(), 0);
    std::vector<bool> alive(graph_.values.size(), false);
    std::vector<NodeId> ready;
    std::vector<NodeId> chain;
    const auto makers = [&](NodeId id) {
      std::vector<NodeId> result;
      for (ValueId input : graph_.node(id).inputs) {
        const NodeId producer = graph_.value(input).producer;
        if (producer.valid() && IsBackward(producer)) result.push_back(producer);
      }
      return result;
    };
    for (NodeId id : in_) {
      if (!IsBackward(id) || is_end_[id.index()]) continue;
      for (NodeId maker : makers(id)) ++needed_by[maker.index()];
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
      for (NodeId maker : makers(id)) {
        if (--needed_by[maker.index()] == 0) ready.push_back(maker);
      }
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  // Bytes alive in front of the node beyond those behind it.
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
    for (ValueId output : graph_.node(id).outputs) is_made_[output.index()] = true;
    for (ValueId input : graph_.node(id).inputs) is_read_[input.index()] = true;
    PlaceEnds([&](NodeId end) { return ReadsOnlyWhatWasRead(end); });
  }

  // Of the same layer, and from a gradient that this node reads too.
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
    const auto& inputs = graph_.node(id).inputs;
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](ValueId input) { return is_made_[input.index()]; });
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
  std::vector<bool> is_end_;   // by node: what it makes is read by nobody in backward, or added up
  std::vector<bool> is_made_;  // by value
  std::vector<bool> is_read_;  // by value: by a backward node that is placed
  std::vector<NodeId> ends_;   // not placed yet
  std::vector<NodeId> out_;
};

}  // namespace

std::vector<NodeId> MakeLateOrder(const Graph& graph, const std::vector<NodeId>& order) {
  return LateOrder(graph, order).Make();
}

}  // namespace thimble
