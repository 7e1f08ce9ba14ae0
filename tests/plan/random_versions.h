// Random graphs whose persistent values change several times in a step, and symbols for their
// values, which show if a node reads a version that was overwritten.
#pragma once

#include <fmt/format.h>

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/plan/random_graph.h"

namespace thimble::toy {

// A graph of toy nodes that read any value, including versions of `w`; `w` and `m` change up to
// four times: rarely in forward, mostly in backward, sometimes in the update.
class RandomVersionedGraph {
 public:
  RandomVersionedGraph(std::mt19937& random, size_t num_nodes) : random_(random) {
    w_ = AddInput(graph_, "w", Role::kParameter, {16});
    m_ = AddInput(graph_, "m", Role::kState, {16});
    values_ = {AddInput(graph_, "x", Role::kInput, {16})};
    const size_t num_forward = 2 + num_nodes / 2;
    for (size_t i = 0; i < num_forward; ++i) AppendAny(Phase::kForward);
    if (Below(8) == 0) AppendNextVersions(Phase::kForward);
    for (size_t i = 0; i < 2; ++i) AppendAny(Phase::kForward);
    for (size_t i = 0, updates = 1 + Below(3); i < updates; ++i) {
      for (size_t j = 0; j <= num_nodes / 4; ++j) AppendAny(Phase::kBackward);
      AppendNextVersions(Phase::kBackward);
    }
    AppendAny(Phase::kBackward);
    graph_.outputs = {values_.back()};
    if (Below(3) == 0) AppendNextVersions(Phase::kUpdate);
  }

  Graph Take() { return std::move(graph_); }

 private:
  size_t Below(size_t limit) { return random_() % limit; }

  // All have 16 elements.
  ValueId Any() {
    const size_t choice = Below(values_.size() + 2);
    return choice < values_.size() ? values_[choice] : w_;
  }

  void AppendAny(Phase phase) {
    static constexpr const char* kOps[] = {"copy", "mix", "mix", "sum2", "blur"};
    NodeSpec spec;
    spec.op = kOps[Below(5)];
    spec.inputs = {Any()};
    if (spec.op == "mix" || spec.op == "sum2") spec.inputs.push_back(Any());
    spec.phase = phase;
    spec.output_role = phase == Phase::kForward ? Role::kActivation : Role::kGradient;
    spec.layer = fmt::format("n{}", graph_.nodes.size());
    values_.push_back(AppendNode(graph_, RandomGraphOps(), std::move(spec)).value()[0]);
  }

  void AppendNextVersions(Phase phase) {
    const ValueId dw = values_[Below(values_.size())];
    if (Below(4) == 0) {  // independent of the previous version
      const auto appended = AppendCarryingNode(
          graph_, RandomGraphOps(), {.op = "copy", .inputs = {dw}, .phase = phase}, {w_});
      THIMBLE_CHECK(appended.ok(), "{}", appended.error().message);
      w_ = LastVersion(graph_, w_);
      return;
    }
    std::tie(w_, m_) = AppendVersions(graph_, RandomGraphOps(), w_, m_, dw, phase);
  }

  std::mt19937& random_;
  Graph graph_;
  ValueId w_, m_;                // their last versions
  std::vector<ValueId> values_;  // that a node may read, in addition to w
};

// Runs the nodes in this order. All versions of a persistent value share one place, which holds
// what was written last. Returns the symbol of each value, by name, and the contents of each place
// after the last node.
inline std::map<std::string, std::string> ComputeSymbols(const Graph& graph,
                                                         const std::vector<NodeId>& order) {
  std::map<std::string, std::string> computed;
  std::map<ValueId, std::string> places;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!graph.values[i].producer.valid()) places[ValueId(i)] = graph.values[i].name;
  }
  // Equal expressions have equal numbers: written out they would grow without limit.
  static std::map<std::string, size_t> numbers;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    std::string expression = fmt::format("{} {}", node.op, ToString(node.attributes));
    for (ValueId input : node.inputs) expression += " " + places[FirstVersion(graph, input)];
    const size_t number = numbers.emplace(expression, numbers.size()).first->second;
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const std::string symbol = fmt::format("#{}.{}", number, o);
      computed[graph.value(node.outputs[o]).name] = symbol;
      places[FirstVersion(graph, node.outputs[o])] = symbol;
    }
  }
  for (const auto& [value, symbol] : places) {
    if (IsPersistent(graph.value(value).role)) computed["kept " + graph.value(value).name] = symbol;
  }
  return computed;
}

// What `actual` computed for the values in `expected`; it may also have rebuilt values.
inline std::map<std::string, std::string> OnlyNamesOf(
    const std::map<std::string, std::string>& expected,
    const std::map<std::string, std::string>& actual) {
  std::map<std::string, std::string> result;
  for (const auto& [name, symbol] : actual) {
    if (expected.contains(name)) result[name] = symbol;
  }
  return result;
}

inline std::vector<NodeId> OrderOf(const Plan& plan) {
  std::vector<NodeId> order;
  for (const Step& step : plan.steps) order.push_back(step.node);
  return order;
}

}  // namespace thimble::toy
