// Drafts for tests of single passes: the graph in the order in which it was built, separate storage
// for every value, kernels chosen.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/plan/draft.h"
#include "thimble/plan/passes/choose_kernels.h"
#include "thimble/plan/program.h"

namespace thimble::toy {

inline PlanDraft MakeDraft(const Graph& graph, const OpRegistry& ops) {
  PlanDraft draft;
  draft.graph = graph;
  for (Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].phase == phase) draft.order.emplace_back(i);
    }
  }
  draft.storage = SeparateStorage(graph);
  const auto chosen = MakeChooseKernelsPass()->Run(draft, ops, {});
  THIMBLE_CHECK(chosen.ok(), "{}", chosen.error().message);
  return draft;
}

// Bytes alive at the peak, counted value by value and step by step.
inline size_t CountLivePeak(const PlanDraft& draft) {
  const Graph& graph = draft.graph;
  const size_t num_steps = draft.order.size();
  const auto reads = [&](size_t step, ValueId id) {
    const auto& inputs = graph.node(draft.order[step]).inputs;
    return std::count(inputs.begin(), inputs.end(), id) > 0;
  };
  const auto alive = [&](ValueId id, size_t at) {
    const Value& value = graph.value(id);
    bool written = !value.producer.valid();
    for (size_t step = 0; step <= at; ++step) {
      written = written || draft.order[step] == value.producer;
    }
    if (!written) return false;
    bool needed = draft.order[at] == value.producer ||
                  std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0;
    for (size_t step = at; step < num_steps; ++step) needed = needed || reads(step, id);
    return needed || (!value.producer.valid() && at == 0);  // the caller writes it before step 0
  };
  size_t peak = 0;
  for (size_t step = 0; step < num_steps; ++step) {
    size_t bytes = draft.kernels[draft.order[step].index()].scratch_bytes;
    std::vector<bool> counted(graph.values.size(), false);
    for (size_t i = 0; i < graph.values.size(); ++i) {
      const size_t root = draft.storage[i].index();
      if (counted[root] || IsPersistent(graph.values[root].role) || !alive(ValueId(i), step)) {
        continue;
      }
      counted[root] = true;
      bytes += graph.values[i].size_bytes();
    }
    peak = std::max(peak, bytes);
  }
  return peak;
}

// Plans one graph above its own persistent values; aborts on failure.
inline Plan PlanToy(const Graph& graph, const OpRegistry& ops, const PlanOptions& options = {}) {
  auto program = PlanProgram({{"toy", graph}}, ops, {}, options);
  THIMBLE_CHECK(program.ok(), "{}\n{}", program.error().message, ToString(graph));
  return std::move(program->plans.front());
}

}  // namespace thimble::toy
