// A chain small enough to count by hand, for the tests of recompute. All values have 64 bytes.
//
//   stage 0  a = copy(x)     backward of 3  dc = copy(c)
//   stage 1  b = copy(a)     backward of 2  db = mix(dc, b)
//   stage 2  c = mix(b, a)   backward of 1  da = mix(db, a)
//   stage 3  e = copy(c)     update         w, m by da
#pragma once

#include <vector>

#include "tests/plan/random_graph.h"
#include "tests/plan/toy_draft.h"
#include "thimble/plan/recompute/chain.h"

namespace thimble::toy {

struct ToyChain {
  ToyChain() {
    const OpRegistry& ops = RandomGraphOps();
    Graph graph;
    const ValueId x = AddInput(graph, "x", Role::kInput, {16});
    const ValueId w = AddInput(graph, "w", Role::kParameter, {16});
    const ValueId m = AddInput(graph, "m", Role::kState, {16});
    a = Append(graph, ops, "copy", {x}, {"a"})[0];
    b = Append(graph, ops, "copy", {a}, {"b"})[0];
    c = Append(graph, ops, "mix", {b, a}, {"c"})[0];
    e = Append(graph, ops, "copy", {c}, {"e"})[0];
    dc = Append(graph, ops, "copy", {c}, {"dc"}, Phase::kBackward)[0];
    db = Append(graph, ops, "mix", {dc, b}, {"db"}, Phase::kBackward)[0];
    da = Append(graph, ops, "mix", {db, a}, {"da"}, Phase::kBackward)[0];
    AppendUpdate(graph, ops, w, m, da);
    draft = MakeDraft(graph, ops);
    chain = MakeChain(draft, ops, {}).value();
  }

  const Graph& graph() const { return draft.graph; }

  ValueId a, b, c, e, dc, db, da;
  PlanDraft draft;
  Chain chain;
};

}  // namespace thimble::toy
