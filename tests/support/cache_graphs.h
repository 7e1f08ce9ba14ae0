// Two graphs that share a cache: one fills it, the other adds it to its input.
#pragma once

#include <string>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/graph/append_node.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/program.h"

namespace thimble {

namespace cache_graphs {

inline ValueId AddValue(Graph& graph, const char* name, int64_t elements, Role role) {
  return graph.AddValue({name, {elements}, DType::kF32, role, {}, {}});
}

inline NodeSpec Spec(const char* op, std::vector<ValueId> inputs) {
  NodeSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.layer = op;
  return spec;
}

// "cache" becomes relu("x").
inline Graph Filling(int64_t elements) {
  Graph graph;
  const ValueId x = AddValue(graph, "x", elements, Role::kInput);
  const ValueId cache = AddValue(graph, "cache", elements, Role::kCache);
  const auto done = AppendCarryingNode(graph, BuiltinOps(), Spec("relu", {x}), {cache});
  THIMBLE_CHECK(done.ok(), "{}", done.error().message);
  return graph;
}

// y = "x" + "cache".
inline Graph Using(int64_t elements) {
  Graph graph;
  const ValueId x = AddValue(graph, "x", elements, Role::kInput);
  const ValueId cache = AddValue(graph, "cache", elements, Role::kCache);
  NodeSpec spec = Spec("add", {x, cache});
  spec.output_names = {"y"};
  graph.outputs = AppendNode(graph, BuiltinOps(), std::move(spec)).value();
  return graph;
}

// relu("w"), where "w" is a parameter.
inline Graph WithoutCache(int64_t elements) {
  Graph graph;
  const ValueId w = AddValue(graph, "w", elements, Role::kParameter);
  NodeSpec spec = Spec("relu", {w});
  spec.output_names = {"y"};
  graph.outputs = AppendNode(graph, BuiltinOps(), std::move(spec)).value();
  return graph;
}

}  // namespace cache_graphs

// Plans "fill A", "use A", "fill B", "use B" of the groups A and B, and "other". The caches of A
// have 100 numbers, those of B 1,000; w has 10.
inline Program PlanGroups() {
  std::vector<NamedGraph> graphs;
  for (const auto& [group, elements] : {std::pair<std::string, int64_t>{"A", 100}, {"B", 1000}}) {
    graphs.push_back(
        {.name = "fill " + group, .graph = cache_graphs::Filling(elements), .group = group});
    graphs.push_back(
        {.name = "use " + group, .graph = cache_graphs::Using(elements), .group = group});
  }
  graphs.push_back({.name = "other", .graph = cache_graphs::WithoutCache(10)});
  auto program = PlanProgram(graphs, BuiltinOps(), {}, {});
  THIMBLE_CHECK(program.ok(), "{}", program.error().message);
  return std::move(program).value();
}

}  // namespace thimble
