#include "thimble/plan/order/find_orders.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "thimble/plan/order/late_order.h"

namespace thimble {
namespace {

// Builds an order greedily: the next node is the ready one that adds the fewest live bytes, alone
// or (looking ahead) together with the best node that waits only for it.
class GreedyOrder {
 public:
  enum class Look { kAtOne, kAhead };

  GreedyOrder(const Graph& graph, Look look)
      : graph_(graph),
        look_(look),
        waits_for_(graph.nodes.size(), 0),
        followers_(graph.nodes.size()),
        predecessors_(graph.nodes.size()),
        readers_(graph.values.size()),
        readers_left_(graph.values.size(), 0),
        scores_(graph.nodes.size()) {
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
        const NodeId node = TakeBest(ready);
        order.push_back(node);
        Finish(node, phase, ready);
      }
    }
    return order;
  }

 private:
  // Among equals the one that was built first.
  NodeId TakeBest(std::vector<NodeId>& ready) {
    size_t best = 0;
    std::pair best_score(KnownScore(ready[0]), ready[0]);
    for (size_t i = 1; i < ready.size(); ++i) {
      const std::pair score(KnownScore(ready[i]), ready[i]);
      if (score < best_score) {
        best = i;
        best_score = score;
      }
    }
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    return best_score.second;
  }

  void AddEdges(NodeId id) {
    const auto& inputs = graph_.node(id).inputs;
    most_inputs_ = std::max(most_inputs_, static_cast<int64_t>(inputs.size()));
    for (ValueId input : inputs) {
      ++readers_left_[input.index()];
      readers_[input.index()].push_back(id);
      const NodeId producer = graph_.value(input).producer;
      if (producer.valid()) AddEdge(producer, id);
    }
  }

  // The next version of a value overwrites it: it is made after the old one, and all other readers
  // of the old one run before.
  void AddCarryEdges(const Carry& carry) {
    const NodeId writer = graph_.value(carry.to).producer;
    const NodeId maker = graph_.value(carry.from).producer;
    if (maker.valid() && NumReads(writer, carry.from) == 0) AddEdge(maker, writer);
    NodeId last;
    for (NodeId reader : readers_[carry.from.index()]) {
      if (reader != writer && reader != last) AddEdge(reader, writer);
      last = reader;
    }
  }

  void AddEdge(NodeId before, NodeId after) {
    followers_[before.index()].push_back(after);
    predecessors_[after.index()].push_back(before);
    ++waits_for_[after.index()];
  }

  // Scores are cached: they change rarely, and there may be as many ready nodes as parameters.
  int64_t KnownScore(NodeId id) {
    std::optional<int64_t>& score = scores_[id.index()];
    if (!score) score = Score(id);
    return *score;
  }

  int64_t Score(NodeId id) const {
    int64_t best_next = 0;
    const auto& followers = followers_[id.index()];
    for (NodeId next : followers) {
      const bool only_this =
          waits_for_[next.index()] == std::count(followers.begin(), followers.end(), next);
      if (look_ == Look::kAtOne || !only_this || graph_.node(next).phase != graph_.node(id).phase)
        continue;
      best_next = std::min(best_next, AddedBytes(next, id));
    }
    return AddedBytes(id) + best_next;
  }

  // Live bytes that running this node adds, now or right after `done`.
  int64_t AddedBytes(NodeId id, NodeId done = {}) const {
    const Node& node = graph_.node(id);
    int64_t added = 0;
    for (ValueId output : node.outputs) {
      if (!IsPersistent(graph_.value(output).role)) {
        added += static_cast<int64_t>(graph_.value(output).size_bytes());
      }
    }
    for (ValueId input : node.inputs) {
      const Value& value = graph_.value(input);
      const int64_t uses = NumReads(id, input);
      const int64_t left =
          readers_left_[input.index()] - (done.valid() ? NumReads(done, input) : 0);
      if (!IsPersistent(value.role) && left == uses) {
        added -= static_cast<int64_t>(value.size_bytes()) / uses;
      }
    }
    return added;
  }

  int64_t NumReads(NodeId id, ValueId value) const {
    const auto& inputs = graph_.node(id).inputs;
    return std::count(inputs.begin(), inputs.end(), value);
  }

  void Finish(NodeId id, Phase phase, std::vector<NodeId>& ready) {
    for (ValueId input : graph_.node(id).inputs) {
      --readers_left_[input.index()];
      ForgetScores(input);
    }
    for (NodeId follower : followers_[id.index()]) {
      for (NodeId other : predecessors_[follower.index()]) scores_[other.index()].reset();
      if (--waits_for_[follower.index()] == 0 && graph_.node(follower).phase == phase) {
        ready.push_back(follower);
      }
    }
  }

  // Drops the scores of nodes that read the value or run before such a node. The number of readers
  // matters only if two nodes could be the last.
  void ForgetScores(ValueId value) {
    if (readers_left_[value.index()] > 2 * most_inputs_) return;
    for (NodeId reader : readers_[value.index()]) {
      scores_[reader.index()].reset();
      for (NodeId before : predecessors_[reader.index()]) scores_[before.index()].reset();
    }
  }

  const Graph& graph_;
  Look look_;
  std::vector<int> waits_for_;  // by node: predecessors that have not run
  std::vector<std::vector<NodeId>> followers_;
  std::vector<std::vector<NodeId>> predecessors_;
  std::vector<std::vector<NodeId>> readers_;    // by value, once per read
  std::vector<int64_t> readers_left_;           // by value
  int64_t most_inputs_ = 0;                     // of any node
  std::vector<std::optional<int64_t>> scores_;  // by node, if known
};

// Phases one after the other, nodes of a phase in the order of the graph.
std::vector<NodeId> OrderAsBuilt(const Graph& graph) {
  std::vector<NodeId> order;
  for (size_t index = 0; index < graph.nodes.size(); ++index) order.emplace_back(index);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return graph.node(a).phase < graph.node(b).phase; });
  return order;
}

}  // namespace

std::vector<FoundOrder> FindOrders(const Graph& graph) {
  std::vector<FoundOrder> orders = {
      {GreedyOrder(graph, GreedyOrder::Look::kAtOne).Make(),
       "greedy: the node that adds the fewest bytes runs first"},
      {GreedyOrder(graph, GreedyOrder::Look::kAhead).Make(), "greedy, looking one node ahead"},
      {MakeLateOrder(graph, OrderAsBuilt(graph)),
       "backward finishes one branch before it starts the next"}};
  // A node that waits for one of a later phase never runs: such orders are incomplete.
  std::erase_if(orders,
                [&](const FoundOrder& found) { return found.order.size() != graph.nodes.size(); });
  return orders;
}

}  // namespace thimble
