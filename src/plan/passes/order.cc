#include "thimble/plan/passes/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "thimble/plan/passes/in_place.h"

namespace thimble {
namespace {

// Builds an order greedily: of the nodes that could run next, the one that adds the fewest live
// bytes.
class GreedyOrder {
 public:
  explicit GreedyOrder(const Graph& graph)
      : graph_(graph),
        waits_for_(graph.nodes.size(), 0),
        followers_(graph.nodes.size()),
        readers_left_(graph.values.size(), 0) {
    for (size_t index = 0; index < graph.nodes.size(); ++index) AddEdges(NodeId(index));
    for (const Carry& carry : graph.carries) AddCarryEdges(carry);
    for (ValueId output : graph.outputs) ++readers_left_[output.index()];
  }

  std::vector<NodeId> Make() {
    std::vector<NodeId> order;
    for (Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      std::vector<NodeId> ready;
      for (size_t index = 0; index < graph_.nodes.size(); ++index) {
        if (graph_.nodes[index].phase == phase && waits_for_[index] == 0) ready.emplace_back(index);
      }
      while (!ready.empty()) {
        const auto best = std::min_element(ready.begin(), ready.end(), [&](NodeId a, NodeId b) {
          return std::pair(AddedBytes(a), a) < std::pair(AddedBytes(b), b);
        });
        const NodeId node = *best;
        ready.erase(best);
        order.push_back(node);
        Finish(node, phase, ready);
      }
    }
    return order;
  }

 private:
  void AddEdges(NodeId id) {
    for (ValueId input : graph_.node(id).inputs) {
      ++readers_left_[input.index()];
      const NodeId producer = graph_.value(input).producer;
      if (producer.valid()) AddEdge(producer, id);
    }
  }

  // The next version of a value is written over it: everyone else reads the old one before.
  void AddCarryEdges(const Carry& carry) {
    const NodeId writer = graph_.value(carry.to).producer;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      const auto& inputs = graph_.nodes[index].inputs;
      const bool reads = std::find(inputs.begin(), inputs.end(), carry.from) != inputs.end();
      if (reads && NodeId(index) != writer) AddEdge(NodeId(index), writer);
    }
  }

  void AddEdge(NodeId before, NodeId after) {
    followers_[before.index()].push_back(after);
    ++waits_for_[after.index()];
  }

  int64_t AddedBytes(NodeId id) const {
    const Node& node = graph_.node(id);
    int64_t added = 0;
    for (ValueId output : node.outputs) {
      if (!IsPersistent(graph_.value(output).role)) {
        added += static_cast<int64_t>(graph_.value(output).size_bytes());
      }
    }
    for (ValueId input : node.inputs) {
      const Value& value = graph_.value(input);
      const auto uses = std::count(node.inputs.begin(), node.inputs.end(), input);
      if (!IsPersistent(value.role) && readers_left_[input.index()] == uses) {
        added -= static_cast<int64_t>(value.size_bytes()) / uses;
      }
    }
    return added;
  }

  void Finish(NodeId id, Phase phase, std::vector<NodeId>& ready) {
    for (ValueId input : graph_.node(id).inputs) --readers_left_[input.index()];
    for (NodeId follower : followers_[id.index()]) {
      if (--waits_for_[follower.index()] == 0 && graph_.node(follower).phase == phase) {
        ready.push_back(follower);
      }
    }
  }

  const Graph& graph_;
  std::vector<int> waits_for_;  // by node: predecessors that have not run
  std::vector<std::vector<NodeId>> followers_;
  std::vector<int64_t> readers_left_;  // by value
};

class OrderPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {"order", Exactness::kSameBits, "run nodes in an order that keeps fewer bytes alive"};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                          const PlanOptions& options) const override {
    // Orders are compared as the later passes will see them, with values computed in place.
    const auto peak = [&](const std::vector<NodeId>& order) {
      PlanDraft trial = draft;
      trial.order = order;
      if (!options.skipped_passes.contains("in-place")) trial.storage = ShareInPlace(trial, ops);
      return LivePeakBytes(trial);
    };
    const size_t as_built = peak(draft.order);
    std::vector<NodeId> greedy = GreedyOrder(draft.graph).Make();
    if (greedy.size() != draft.order.size() || peak(greedy) >= as_built) {
      return std::string("the order as built is as good as any found");
    }
    draft.order = std::move(greedy);
    return std::string("greedy order: fewest added bytes first");
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakeOrderPass() { return std::make_unique<OrderPass>(); }

}  // namespace thimble
