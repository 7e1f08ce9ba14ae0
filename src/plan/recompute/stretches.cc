#include "thimble/plan/recompute/stretches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "thimble/base/byte_size.h"
#include "thimble/base/function_ref.h"

namespace thimble {
namespace {

// One run of a node: what it reads and writes, and its scratch.
struct NodeRun {
  const OpDef& op;
  std::span<const ValueId> inputs;
  std::span<const ValueId> outputs;
  size_t scratch_bytes;
};

// Bytes alive while nodes run one after the other. May fall below its start, because values of the
// caller are released, too.
class LiveCount {
 public:
  LiveCount(const Chain& chain, int64_t start) : chain_(chain), alive_(start), most_(start) {}

  // `dies`: whether an input is read for the last time; `counts`: whether an output needs bytes;
  // `stays`: whether an output is alive after the step.
  void Run(const NodeRun& run, FunctionRef<bool(ValueId)> dies, FunctionRef<bool(ValueId)> counts,
           FunctionRef<bool(ValueId)> stays) {
    int64_t written = static_cast<int64_t>(run.scratch_bytes);
    taken_.assign(run.inputs.size(), false);
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      if (counts(run.outputs[o]) && !Reuses(run, o, dies)) written += Bytes(run.outputs[o]);
    }
    most_ = std::max(most_, alive_ + written);
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      const auto before = run.inputs.first(i);
      const bool again = std::find(before.begin(), before.end(), run.inputs[i]) != before.end();
      if (!again && dies(run.inputs[i])) alive_ -= Bytes(run.inputs[i]);
    }
    for (ValueId output : run.outputs) {
      if (counts(output) && stays(output)) alive_ += Bytes(output);
    }
    most_ = std::max(most_, alive_);
  }

  size_t most_bytes() const { return static_cast<size_t>(std::max<int64_t>(0, most_)); }

 private:
  int64_t Bytes(ValueId value) const {
    return static_cast<int64_t>(chain_.values[value.index()].size_bytes);
  }

  // Whether the output reuses the bytes of an input that is not read again.
  bool Reuses(const NodeRun& run, size_t output, FunctionRef<bool(ValueId)> dies) {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      if (taken_[i] || !run.op.MayReuse(output, i) || !dies(run.inputs[i]) ||
          Bytes(run.inputs[i]) != Bytes(run.outputs[output])) {
        continue;
      }
      taken_[i] = true;
      return true;
    }
    return false;
  }

  const Chain& chain_;
  int64_t alive_;
  int64_t most_;
  std::vector<bool> taken_;  // inputs of the present run whose bytes are reused
};

}  // namespace

Stretches::Stretches(const Graph& graph, const OpRegistry& ops, const Chain& chain)
    : graph_(graph), chain_(chain) {
  for (size_t f = 0; f < chain.forward.size(); ++f) {
    forward_ops_.push_back(&ops.Get(graph.node(chain.forward[f]).op));
    rerun_ops_.push_back(&ops.Get(chain.reruns[f].op));
  }
  for (const NodeId node : chain.backward) backward_ops_.push_back(&ops.Get(graph.node(node).op));
  NumberValues();
  for (size_t stage = 0; stage < chain.num_stages; ++stage) {
    const size_t step = chain.BackwardOf(stage).first;
    size_t bytes = 0;
    for (const ChainValue& value : chain.values) {
      const bool alive = value.first < step && step <= value.last;
      if (value.kind == ChainValue::Kind::kBackward && alive) bytes += value.size_bytes;
    }
    gradient_bytes_.push_back(bytes);
  }
  FindUses();
}

void Stretches::NumberValues() {
  numbers_.assign(chain_.values.size(), kNotMade);
  for (size_t f = 0; f < chain_.forward.size(); ++f) {
    made_before_.resize(chain_.stage_of_forward[f] + 1, made_.size());
    for (ValueId output : graph_.node(chain_.forward[f]).outputs) {
      numbers_[output.index()] = made_.size();
      made_.push_back(output);
    }
  }
  made_before_.resize(chain_.num_stages + 1, made_.size());
}

// A stage's own forward nodes run again for its backward steps only if these need them.
void Stretches::FindUses() {
  uses_.resize(chain_.values.size());
  std::vector<bool> runs_for_backward(chain_.forward.size(), false);
  for (size_t stage = 0; stage < chain_.num_stages; ++stage) {
    for (const ChainStep& step : BackwardSteps(stage, false)) {
      if (!step.backward) runs_for_backward[step.position] = true;
    }
  }
  for (size_t f = 0; f < chain_.forward.size(); ++f) {
    const size_t stage = chain_.stage_of_forward[f];
    for (ValueId input : chain_.reruns[f].inputs) {
      uses_[input.index()].push_back({stage, runs_for_backward[f] ? stage : stage + 1});
    }
  }
  for (size_t b = 0; b < chain_.backward.size(); ++b) {
    const size_t stage = chain_.stage_of_backward[b];
    for (ValueId input : graph_.node(chain_.backward[b]).inputs) {
      uses_[input.index()].push_back({stage, stage});
    }
  }
}

bool Stretches::Needs(ValueId value, size_t i, size_t t) const {
  const auto& uses = uses_[value.index()];
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.stage >= i && (use.from_t <= t || IsFirstPass(t));
  });
}

Stretches::Wanted Stretches::EntryValues(size_t s, size_t i, size_t t) const {
  Wanted wanted(*this, s, i);
  for (ValueId value : Made(s, i)) {
    if (MayDrop(value) && Needs(value, i, t)) wanted[value] = true;
  }
  return wanted;
}

std::vector<Stretches::EntrySize> Stretches::Entries(size_t i, size_t t) const {
  std::vector<EntrySize> entries(i + 1);
  for (ValueId value : Made(0, i)) {
    if (!MayDrop(value) || !Needs(value, i, t)) continue;
    EntrySize& entry = entries[Of(value).first];
    ++entry.count;
    entry.bytes += Of(value).size_bytes;
  }
  for (size_t s = i; s-- > 0;) {
    entries[s].count += entries[s + 1].count;
    entries[s].bytes += entries[s + 1].bytes;
  }
  return entries;
}

Stretches::Wanted Stretches::Saved(size_t s, size_t t) const {
  Wanted wanted = EntryValues(s, s + 1, t);
  for (ValueId value : Made(s, s + 1)) {
    if (MayDrop(value) && IsReadWhereMade(value)) wanted[value] = true;
  }
  return wanted;
}

size_t Stretches::SavedBytes(size_t s, size_t t) const {
  const Wanted saved = Saved(s, t);
  size_t bytes = 0;
  for (ValueId value : Made(s, s + 1)) {
    if (saved[value]) bytes += Of(value).size_bytes;
  }
  return bytes;
}

std::vector<ChainStep> Stretches::Nodes(size_t s, size_t i, size_t t, Wanted wanted) const {
  const size_t begin = chain_.ForwardOf(s).first;
  std::vector<ChainStep> steps;
  for (size_t position = chain_.ForwardOf(i - 1).end; position-- > begin;) {
    const Rerun& rerun = chain_.reruns[position];
    const bool needed = std::any_of(rerun.outputs.begin(), rerun.outputs.end(),
                                    [&](ValueId output) { return wanted[output]; });
    if (!needed && !IsFirstPass(t)) continue;
    steps.push_back({false, position});
    for (ValueId input : rerun.inputs) {
      if (MayDrop(input) && Of(input).first >= s) wanted[input] = true;
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

StretchCost Stretches::PlayForward(const std::vector<ChainStep>& steps, size_t s, size_t i,
                                   size_t t, const Wanted& wanted) const {
  const bool first_pass = IsFirstPass(t);
  OfMade<size_t> ends(*this, s, i);  // the step after the last one that reads the value
  const auto run_of = [&](size_t position) -> NodeRun {
    const Rerun& rerun = chain_.reruns[position];
    const Node& node = graph_.node(chain_.forward[position]);
    if (first_pass) {
      return {*forward_ops_[position], node.inputs, node.outputs,
              chain_.forward_scratch_bytes[position]};
    }
    return {*rerun_ops_[position], rerun.inputs, rerun.outputs,
            RoundUp(rerun.kernel.scratch_bytes, kArenaAlignment)};
  };
  for (size_t step = 0; step < steps.size(); ++step) {
    const NodeRun run = run_of(steps[step].position);
    for (ValueId input : run.inputs) {
      if (ends.Contains(input)) ends[input] = step + 1;
    }
    for (ValueId output : run.outputs) ends[output] = step + 1;
  }
  LiveCount live(chain_, 0);
  StretchCost cost;
  for (size_t step = 0; step < steps.size(); ++step) {
    const auto dies = [&](ValueId input) {
      return MayDrop(input) && ends.Contains(input) && ends[input] == step + 1 && !wanted[input];
    };
    // A fixed value always exists, but a second copy of it needs bytes while its node runs.
    const auto counts = [&](ValueId output) { return !first_pass || MayDrop(output); };
    const auto stays = [&](ValueId output) {
      return MayDrop(output) && (wanted[output] || ends[output] > step + 1);
    };
    live.Run(run_of(steps[step].position), dies, counts, stays);
    if (!first_pass) cost.work += chain_.reruns[steps[step].position].work;
  }
  cost.bytes = live.most_bytes();
  return cost;
}

StretchCost Stretches::Forward(size_t s, size_t i, size_t t) const {
  const Wanted entry = EntryValues(s, i, t);
  return PlayForward(Nodes(s, i, t, entry), s, i, t, entry);
}

std::vector<ChainStep> Stretches::ForwardSteps(size_t s, size_t i, size_t t) const {
  return Nodes(s, i, t, EntryValues(s, i, t));
}

StretchCost Stretches::ForwardSaving(size_t s, size_t t) const {
  const Wanted saved = Saved(s, t);
  return PlayForward(Nodes(s, s + 1, t, saved), s, s + 1, t, saved);
}

std::vector<ChainStep> Stretches::ForwardSavingSteps(size_t s, size_t t) const {
  return Nodes(s, s + 1, t, Saved(s, t));
}

std::vector<ChainStep> Stretches::Missing(size_t stage, size_t step, const Wanted& present) const {
  Wanted wanted(*this, stage, stage + 1);
  for (ValueId input : graph_.node(chain_.backward[step]).inputs) {
    if (MayDrop(input) && Of(input).first == stage) wanted[input] = true;
  }
  std::vector<ChainStep> steps;
  const LiveRange nodes = chain_.ForwardOf(stage);
  for (size_t position = nodes.end; position-- > nodes.first;) {
    const Rerun& rerun = chain_.reruns[position];
    const bool needed =
        std::any_of(rerun.outputs.begin(), rerun.outputs.end(),
                    [&](ValueId output) { return wanted[output] && !present[output]; });
    if (!needed) continue;
    steps.push_back({false, position});
    for (ValueId input : rerun.inputs) {
      if (MayDrop(input) && Of(input).first == stage) wanted[input] = true;
    }
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::vector<ChainStep> Stretches::BackwardSteps(size_t stage, bool saved) const {
  std::vector<ChainStep> steps;
  Wanted present(*this, stage, stage + 1);
  const LiveRange backward = chain_.BackwardOf(stage);
  for (size_t step = backward.first; step < backward.end; ++step) {
    if (!saved) {
      for (const ChainStep& again : Missing(stage, step, present)) {
        steps.push_back(again);
        // Intermediate values are released when the values made from them exist.
        for (ValueId output : chain_.reruns[again.position].outputs) {
          if (MayDrop(output)) present[output] = Of(output).backward_end > step;
        }
      }
    }
    steps.push_back({true, step});
  }
  return steps;
}

StretchCost Stretches::Backward(size_t stage, bool saved) const {
  const std::vector<ChainStep> steps = BackwardSteps(stage, saved);
  int64_t start = static_cast<int64_t>(GradientBytes(stage));
  const auto run_of = [&](const ChainStep& step) -> NodeRun {
    if (step.backward) {
      const Node& node = graph_.node(chain_.backward[step.position]);
      return {*backward_ops_[step.position], node.inputs, node.outputs,
              chain_.backward_scratch_bytes[step.position]};
    }
    const Rerun& rerun = chain_.reruns[step.position];
    return {*rerun_ops_[step.position], rerun.inputs, rerun.outputs,
            RoundUp(rerun.kernel.scratch_bytes, kArenaAlignment)};
  };
  for (ValueId value : Made(stage, stage + 1)) {
    if (saved && MayDrop(value) && IsReadWhereMade(value))
      start += static_cast<int64_t>(Of(value).size_bytes);
  }
  // A value that is rebuilt twice is alive from each rebuild to its last reader before the next.
  std::vector<std::pair<ValueId, size_t>> reads;
  std::vector<std::pair<ValueId, size_t>> writes;
  for (size_t i = 0; i < steps.size(); ++i) {
    const NodeRun run = run_of(steps[i]);
    for (ValueId input : run.inputs) reads.emplace_back(input, i);
    for (ValueId output : run.outputs) writes.emplace_back(output, i);
  }
  std::sort(reads.begin(), reads.end());
  std::sort(writes.begin(), writes.end());
  const auto next_after = [](const auto& uses, ValueId value, size_t step) {
    const auto next = std::upper_bound(uses.begin(), uses.end(), std::pair(value, step));
    return next != uses.end() && next->first == value ? next->second : SIZE_MAX;
  };
  const auto read_again = [&](ValueId value, size_t step) {
    return next_after(reads, value, step) < next_after(writes, value, step);
  };
  LiveCount live(chain_, start);
  StretchCost cost;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool backward = steps[i].backward;
    const auto dies = [&](ValueId input) {
      const ChainValue& value = Of(input);
      if (value.kind == ChainValue::Kind::kBackward) {
        return backward && value.last == steps[i].position;
      }
      if (value.kind != ChainValue::Kind::kForward) return false;
      if (read_again(input, i)) return false;
      // Values of the caller that no earlier stage reads are released after their last reader.
      return value.first == stage || (backward && value.backward_end == steps[i].position + 1U &&
                                      value.next_reader >= stage);
    };
    const auto counts = [&](ValueId output) {
      return !backward || Of(output).kind == ChainValue::Kind::kBackward;
    };
    const auto stays = [&](ValueId output) {
      if (backward) return Of(output).last > steps[i].position;
      return MayDrop(output) && read_again(output, i);
    };
    live.Run(run_of(steps[i]), dies, counts, stays);
    if (!backward) cost.work += chain_.reruns[steps[i].position].work;
  }
  cost.bytes = live.most_bytes();
  return cost;
}

}  // namespace thimble
