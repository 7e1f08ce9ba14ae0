// All schedules of the class that OptimalSchedules searches (optimal.h), one by one: each is
// simulated step by step with sets of values, using only the chain's nodes and stages.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/plan/recompute/optimal.h"

namespace thimble::toy {

struct Outcome {
  size_t bytes = 0;
  double work = 0;
};

class EveryScheduleOfTheClass {
 public:
  EveryScheduleOfTheClass(const Graph& graph, const OpRegistry& ops, const Chain& chain)
      : graph_(graph), ops_(ops), chain_(chain) {}

  // Peak and work of every schedule.
  std::vector<Outcome> Play() {
    outcomes_.clear();
    Solve(0, chain_.num_stages - 1, {}, {}, [&](const State& state) {
      outcomes_.push_back({state.peak, state.work});
    });
    return outcomes_;
  }

 private:
  using Values = std::set<ValueId>;
  struct State {
    Values gradients;  // alive
    size_t peak = 0;
    double work = 0;
  };
  using Next = std::function<void(const State&)>;
  struct Run {
    const OpDef* op;
    std::vector<ValueId> inputs;
    std::vector<ValueId> outputs;
    size_t scratch;
  };

  bool First(size_t t) const { return t + 1 == chain_.num_stages; }
  size_t Bytes(ValueId v) const { return chain_.values[v.index()].size_bytes; }
  size_t Sum(const Values& values) const {
    size_t sum = 0;
    for (ValueId v : values) sum += Bytes(v);
    return sum;
  }
  bool Droppable(ValueId v) const {
    return chain_.values[v.index()].kind == ChainValue::Kind::kForward;
  }
  size_t MadeIn(ValueId v) const {
    for (size_t f = 0; f < chain_.forward.size(); ++f) {
      const auto& outputs = graph_.node(chain_.forward[f]).outputs;
      if (std::count(outputs.begin(), outputs.end(), v) > 0) return chain_.stage_of_forward[f];
    }
    return SIZE_MAX;
  }
  static bool Has(const std::vector<ValueId>& values, ValueId v) {
    return std::find(values.begin(), values.end(), v) != values.end();
  }

  Run FirstRun(size_t f) const {
    const Node& node = graph_.node(chain_.forward[f]);
    return {&ops_.Get(node.op), node.inputs, node.outputs, chain_.forward_scratch_bytes[f]};
  }
  Run Again(size_t f) const {
    const Rerun& rerun = chain_.reruns[f];
    return {&ops_.Get(rerun.op), rerun.inputs, rerun.outputs,
            (rerun.kernel.scratch_bytes + 63) / 64 * 64};
  }
  Run BackwardRun(size_t b) const {
    const Node& node = graph_.node(chain_.backward[b]);
    return {&ops_.Get(node.op), node.inputs, node.outputs, chain_.backward_scratch_bytes[b]};
  }

  // Bytes while the node runs, with these values alive before it; `dying` are read for the last
  // time.
  size_t Peak(const Run& run, const Values& alive, const Values& dying,
              const std::vector<ValueId>& written) const {
    size_t bytes = Sum(alive) + run.scratch;
    std::vector<bool> taken(run.inputs.size(), false);
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      if (!Has(written, run.outputs[o])) continue;
      bool shares = false;
      for (size_t i = 0; i < run.inputs.size() && !shares; ++i) {
        shares = !taken[i] && run.op->MayReuse(o, i) && dying.count(run.inputs[i]) > 0 &&
                 Bytes(run.inputs[i]) == Bytes(run.outputs[o]);
        if (shares) taken[i] = true;
      }
      if (!shares) bytes += Bytes(run.outputs[o]);
    }
    return bytes;
  }

  // Forward nodes of stage k that its own backward steps need if no value of that stage exists.
  Values NeededInBackward(size_t k) const {
    Values values;
    for (size_t b = 0; b < chain_.backward.size(); ++b) {
      if (chain_.stage_of_backward[b] != k) continue;
      for (ValueId v : graph_.node(chain_.backward[b]).inputs) {
        if (Droppable(v) && MadeIn(v) == k) values.insert(v);
      }
    }
    for (size_t f = chain_.forward.size(); f-- > 0;) {
      if (chain_.stage_of_forward[f] != k) continue;
      const Rerun& rerun = chain_.reruns[f];
      if (std::none_of(rerun.outputs.begin(), rerun.outputs.end(),
                       [&](ValueId v) { return values.count(v) > 0; })) {
        continue;
      }
      for (ValueId v : rerun.inputs) {
        if (Droppable(v) && MadeIn(v) == k) values.insert(v);
      }
    }
    return values;
  }
  bool RunsForBackward(size_t f) const {
    const Values needed = NeededInBackward(chain_.stage_of_forward[f]);
    const auto& outputs = chain_.reruns[f].outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](ValueId v) { return needed.count(v) > 0; });
  }

  // The values that the problem (i, t) needs from earlier stages.
  Values EntryOf(size_t i, size_t t) const {
    Values entry;
    const auto add = [&](const std::vector<ValueId>& inputs) {
      for (ValueId v : inputs) {
        if (Droppable(v) && MadeIn(v) < i) entry.insert(v);
      }
    };
    for (size_t b = 0; b < chain_.backward.size(); ++b) {
      const size_t k = chain_.stage_of_backward[b];
      if (k >= i && k <= t) add(graph_.node(chain_.backward[b]).inputs);
    }
    for (size_t f = 0; f < chain_.forward.size(); ++f) {
      const size_t k = chain_.stage_of_forward[f];
      const bool may_run = First(t) || k < t || (k == t && RunsForBackward(f));
      if (k >= i && may_run) add(chain_.reruns[f].inputs);
    }
    return entry;
  }

  // Runs the forward nodes of [s, i) that `wanted` needs; in the first pass all of them.
  void PlayForward(size_t s, size_t i, size_t t, const Values& wanted, const Values& held,
                   State& state) const {
    std::vector<size_t> nodes;
    Values leads = wanted;
    for (size_t f = chain_.forward.size(); f-- > 0;) {
      if (chain_.stage_of_forward[f] < s || chain_.stage_of_forward[f] >= i) continue;
      const Rerun& rerun = chain_.reruns[f];
      const bool needed = std::any_of(rerun.outputs.begin(), rerun.outputs.end(),
                                      [&](ValueId v) { return leads.count(v) > 0; });
      if (!needed && !First(t)) continue;
      nodes.insert(nodes.begin(), f);
      for (ValueId v : rerun.inputs) {
        if (Droppable(v) && MadeIn(v) >= s) leads.insert(v);
      }
    }
    Values made;
    for (size_t n = 0; n < nodes.size(); ++n) {
      const Run run = First(t) ? FirstRun(nodes[n]) : Again(nodes[n]);
      const auto read_later = [&](ValueId v) {
        for (size_t later = n + 1; later < nodes.size(); ++later) {
          const Run other = First(t) ? FirstRun(nodes[later]) : Again(nodes[later]);
          if (Has(other.inputs, v)) return true;
        }
        return false;
      };
      Values dying;
      for (ValueId v : run.inputs) {
        if (made.count(v) > 0 && wanted.count(v) == 0 && !read_later(v)) dying.insert(v);
      }
      std::vector<ValueId> written;
      for (ValueId v : run.outputs) {
        if (!First(t) || Droppable(v)) written.push_back(v);
      }
      Values alive = held;
      alive.insert(made.begin(), made.end());
      alive.insert(state.gradients.begin(), state.gradients.end());
      state.peak = std::max(state.peak, Peak(run, alive, dying, written));
      for (ValueId v : dying) made.erase(v);
      for (ValueId v : run.outputs) {
        if (Droppable(v) && (wanted.count(v) > 0 || read_later(v))) made.insert(v);
      }
      if (!First(t)) state.work += chain_.reruns[nodes[n]].work;
    }
  }

  // The backward steps of stage s; values of the stage exist, or are rebuilt right before the first
  // step that reads them.
  void PlayBackward(size_t s, bool saved, const Values& held, State& state) const {
    struct Step {
      bool backward;
      size_t position;
    };
    std::vector<Step> steps;
    Values there;
    Values alive = held;
    for (size_t b = 0; b < chain_.backward.size(); ++b) {
      if (chain_.stage_of_backward[b] != s) continue;
      const auto& inputs = graph_.node(chain_.backward[b]).inputs;
      for (ValueId v : inputs) {
        if (saved && Droppable(v) && MadeIn(v) == s) alive.insert(v);
      }
      Values leads;
      for (ValueId v : inputs) {
        if (Droppable(v) && MadeIn(v) == s) leads.insert(v);
      }
      std::vector<Step> again;
      for (size_t f = chain_.forward.size(); !saved && f-- > 0;) {
        if (chain_.stage_of_forward[f] != s) continue;
        const Rerun& rerun = chain_.reruns[f];
        if (std::none_of(rerun.outputs.begin(), rerun.outputs.end(),
                         [&](ValueId v) { return leads.count(v) > 0 && there.count(v) == 0; })) {
          continue;
        }
        again.insert(again.begin(), {false, f});
        for (ValueId v : rerun.inputs) {
          if (Droppable(v) && MadeIn(v) == s) leads.insert(v);
        }
      }
      for (const Step& step : again) {
        steps.push_back(step);
        for (ValueId v : chain_.reruns[step.position].outputs) {
          if (Droppable(v) && LastBackwardRead(v) >= static_cast<int>(b)) there.insert(v);
          if (Droppable(v) && LastBackwardRead(v) < static_cast<int>(b)) there.erase(v);
        }
      }
      steps.push_back({true, b});
    }
    const auto run_of = [&](const Step& step) {
      return step.backward ? BackwardRun(step.position) : Again(step.position);
    };
    for (size_t n = 0; n < steps.size(); ++n) {
      const Run run = run_of(steps[n]);
      const auto read_later = [&](ValueId v) {
        for (size_t later = n + 1; later < steps.size(); ++later) {
          const Run other = run_of(steps[later]);
          if (Has(other.inputs, v)) return true;
          if (Has(other.outputs, v)) return false;
        }
        return false;
      };
      const size_t b = steps[n].position;
      Values dying;
      for (ValueId v : run.inputs) {
        const auto kind = chain_.values[v.index()].kind;
        if (kind == ChainValue::Kind::kBackward) {
          if (steps[n].backward && !GradientReadAfter(v, b)) dying.insert(v);
        } else if (Droppable(v) && !read_later(v)) {
          const bool last = steps[n].backward && LastBackwardRead(v) == static_cast<int>(b) &&
                            !ForwardReadBetween(v, s);
          if (MadeIn(v) == s || last) dying.insert(v);
        }
      }
      std::vector<ValueId> written;
      for (ValueId v : run.outputs) {
        const auto kind = chain_.values[v.index()].kind;
        if (!steps[n].backward || kind == ChainValue::Kind::kBackward) written.push_back(v);
      }
      Values all = alive;
      all.insert(state.gradients.begin(), state.gradients.end());
      state.peak = std::max(state.peak, Peak(run, all, dying, written));
      for (ValueId v : dying) {
        alive.erase(v);
        state.gradients.erase(v);
      }
      for (ValueId v : written) {
        if (steps[n].backward && GradientReadAfter(v, b)) state.gradients.insert(v);
        if (!steps[n].backward && Droppable(v) && read_later(v)) alive.insert(v);
      }
      if (!steps[n].backward) state.work += chain_.reruns[b].work;
    }
  }

  bool IsReadInBackwardOf(ValueId v, size_t s) const {
    for (size_t b = 0; b < chain_.backward.size(); ++b) {
      if (chain_.stage_of_backward[b] == s && Has(graph_.node(chain_.backward[b]).inputs, v)) {
        return true;
      }
    }
    return false;
  }
  int LastBackwardRead(ValueId v) const {
    int last = -1;
    for (size_t b = 0; b < chain_.backward.size(); ++b) {
      if (Has(graph_.node(chain_.backward[b]).inputs, v)) last = static_cast<int>(b);
    }
    return last;
  }
  bool ForwardReadBetween(ValueId v, size_t s) const {
    for (size_t f = 0; f < chain_.forward.size(); ++f) {
      const size_t k = chain_.stage_of_forward[f];
      if (k > MadeIn(v) && k < s && Has(graph_.node(chain_.forward[f]).inputs, v)) return true;
    }
    return false;
  }
  bool GradientReadAfter(ValueId v, size_t b) const {
    if (Has(graph_.outputs, v)) return true;
    for (NodeId id : chain_.update) {
      if (Has(graph_.node(id).inputs, v)) return true;
    }
    return LastBackwardRead(v) > static_cast<int>(b);
  }

  Values With(Values held, const Values& more) const {
    held.insert(more.begin(), more.end());
    return held;
  }

  // Every way to solve (s, t) with these values held; `next` continues after it.
  void Solve(size_t s, size_t t, const Values& held, const State& state, const Next& next) {
    if (s == t) {
      State after = state;
      if (First(t)) {
        Values saved;
        for (ValueId v : SavedValues(s, t)) saved.insert(v);
        PlayForward(s, s + 1, t, saved, held, after);
      }
      PlayBackward(s, First(t), held, after);
      return next(after);
    }
    {
      const Values saved = SavedValues(s, t);
      State after = state;
      PlayForward(s, s + 1, t, saved, held, after);
      Solve(s + 1, t, With(held, saved), after, [&, s, held](const State& done) {
        State last = done;
        PlayBackward(s, true, held, last);
        next(last);
      });
    }
    for (size_t i = s + 1; i <= t; ++i) {
      Values entry;
      for (ValueId v : EntryOf(i, t)) {
        if (MadeIn(v) >= s) entry.insert(v);
      }
      State after = state;
      PlayForward(s, i, t, entry, held, after);
      Solve(i, t, With(held, entry), after,
            [&, s, i, held](const State& done) { Solve(s, i - 1, held, done, next); });
    }
  }

  Values SavedValues(size_t s, size_t t) const {
    Values saved;
    if (s < t) {
      for (ValueId v : EntryOf(s + 1, t)) {
        if (MadeIn(v) == s) saved.insert(v);
      }
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const ValueId id(v);
      if (Droppable(id) && MadeIn(id) == s && IsReadInBackwardOf(id, s)) saved.insert(id);
    }
    return saved;
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  const Chain& chain_;
  std::vector<Outcome> outcomes_;
};

}  // namespace thimble::toy
