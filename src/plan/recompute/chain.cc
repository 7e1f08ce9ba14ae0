#include "thimble/plan/recompute/chain.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "thimble/base/byte_size.h"
#include "thimble/graph/append_node.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/passes/choose_kernels.h"

namespace thimble {
namespace {

// Floating-point operations that machines do while they move a byte: 7 on a CPU core with AVX-512,
// 5 to 20 on GPUs with fp32 multiply-adds.
constexpr double kFlopsPerByte = 8;

// Values below this share of the largest forward value are not worth dropping: statistics, pooled
// features, scores.
constexpr size_t kSmallShare = 256;

class ChainBuilder {
 public:
  ChainBuilder(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options)
      : draft_(draft), graph_(draft.graph), ops_(ops), options_(options) {}

  Result<Chain> Build(size_t max_stages) {
    SplitByPhase();
    if (chain_.backward.empty()) return std::move(chain_);
    ClassifyValues();
    for (NodeId node : chain_.forward) {
      THIMBLE_ASSIGN_OR_RETURN(Rerun rerun, RerunOf(node));
      chain_.reruns.push_back(std::move(rerun));
      chain_.forward_scratch_bytes.push_back(ScratchBytes(node));
    }
    for (NodeId node : chain_.backward) {
      chain_.backward_scratch_bytes.push_back(ScratchBytes(node));
    }
    std::vector<size_t> stages(chain_.forward.size());
    std::iota(stages.begin(), stages.end(), size_t{0});
    SetStages(stages);
    if (chain_.num_stages > max_stages) SetStages(JoinedStages(max_stages));
    FindOverwriters();
    while (KeepWhatCannotBeRebuilt()) SetStages(chain_.stage_of_forward);
    return std::move(chain_);
  }

 private:
  void SplitByPhase() {
    for (NodeId id : draft_.order) {
      switch (graph_.node(id).phase) {
        case Phase::kForward:
          chain_.forward.push_back(id);
          break;
        case Phase::kBackward:
          chain_.backward.push_back(id);
          break;
        case Phase::kUpdate:
          chain_.update.push_back(id);
          break;
      }
    }
  }

  void ClassifyValues() {
    using Kind = ChainValue::Kind;
    chain_.values.resize(graph_.values.size());
    size_t largest = 0;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      chain_.values[i].size_bytes = RoundUp(graph_.values[i].size_bytes(), kArenaAlignment);
    }
    for (NodeId id : chain_.forward) {
      for (ValueId output : graph_.node(id).outputs) {
        if (IsPersistent(graph_.value(output).role)) continue;
        Of(output).kind = Kind::kForward;
        largest = std::max(largest, Of(output).size_bytes);
      }
    }
    for (NodeId id : chain_.backward) {
      for (ValueId output : graph_.node(id).outputs) {
        if (!IsPersistent(graph_.value(output).role)) Of(output).kind = Kind::kBackward;
      }
    }
    for (ChainValue& value : chain_.values) {
      if (value.kind == Kind::kForward && value.size_bytes < largest / kSmallShare) {
        value.kind = Kind::kFixed;
      }
    }
    const auto keep = [&](ValueId value) {
      if (Of(value).kind == Kind::kForward) Of(value).kind = Kind::kFixed;
      Of(value).last = chain_.backward.size();  // values made by backward are kept to the end
    };
    for (NodeId id : chain_.update) {
      for (ValueId input : graph_.node(id).inputs) keep(input);
    }
    for (ValueId output : graph_.outputs) keep(output);
  }

  // Uses the op's RebuildWith rule if all outputs that the rule reads are fixed, else the op
  // itself.
  Result<Rerun> RerunOf(NodeId id) const {
    const Node& node = graph_.node(id);
    Rerun rerun{node.op, node.inputs, node.outputs, node.attributes, draft_.kernels[id.index()], 0};
    const RebuildRule& rule = ops_.Get(node.op).rebuild_rule();
    const bool applies =
        !rule.op.empty() && std::all_of(rule.outputs.begin(), rule.outputs.end(), [&](size_t port) {
          return chain_.values[node.outputs[port].index()].kind == ChainValue::Kind::kFixed;
        });
    if (!applies) {
      rerun.work = WorkOf(graph_, ops_, node);
      return rerun;
    }
    Node other = node;
    other.op = rule.op;
    other.inputs.clear();
    for (size_t port : rule.inputs) other.inputs.push_back(node.inputs[port]);
    for (size_t port : rule.outputs) other.inputs.push_back(node.outputs[port]);
    other.outputs = {node.outputs[0]};
    other.attributes = {};
    for (const auto& [name, value] : ops_.Get(rule.op).default_attributes().entries()) {
      const AttributeValue* given = node.attributes.Find(name);
      other.attributes.Set(name, given == nullptr ? value : *given);
    }
    THIMBLE_ASSIGN_OR_RETURN(rerun.kernel, ChooseKernel(graph_, ops_, other, options_));
    rerun.work = WorkOf(graph_, ops_, other);
    rerun.op = other.op;
    rerun.inputs = other.inputs;
    rerun.outputs = other.outputs;
    rerun.attributes = other.attributes;
    return rerun;
  }

  void SetStages(std::vector<size_t> stage_of_forward) {
    chain_.stage_of_forward = std::move(stage_of_forward);
    chain_.num_stages = chain_.stage_of_forward.back() + 1;
    for (size_t f = 0; f < chain_.forward.size(); ++f) {
      for (ValueId output : graph_.node(chain_.forward[f]).outputs) {
        ChainValue& value = Of(output);
        if (value.kind == ChainValue::Kind::kForward) {
          value.first = value.last = chain_.stage_of_forward[f];
          value.next_reader = ChainValue::kNoStage;
        }
      }
    }
    FindForwardReaders();
    AssignBackward();
    FindBackwardReaders();
  }

  // A gradient usually belongs to the node that read the value in forward. The value crosses the
  // cut before that node's stage, so that backward needs nothing that made the value.
  size_t StageToReadIn(const ChainValue& value) const {
    return value.next_reader == ChainValue::kNoStage ? value.first : value.next_reader;
  }

  void AssignBackward() {
    chain_.stage_of_backward.assign(chain_.backward.size(), 0);
    size_t stage = 0;
    for (size_t b = chain_.backward.size(); b-- > 0;) {
      for (ValueId input : graph_.node(chain_.backward[b]).inputs) {
        if (Of(input).kind != ChainValue::Kind::kForward) continue;
        stage = std::max(stage, StageToReadIn(Of(input)));
      }
      chain_.stage_of_backward[b] = stage;
    }
  }

  // By value: the backward step that overwrites it with its next version; kNever if a forward node
  // does, so that its readers cannot run again at all.
  void FindOverwriters() {
    overwritten_at_.assign(graph_.values.size(), kAnyTime);
    std::map<NodeId, size_t> steps;
    for (size_t b = 0; b < chain_.backward.size(); ++b) steps[chain_.backward[b]] = b;
    for (const Carry& carry : graph_.carries) {
      const NodeId writer = graph_.value(carry.to).producer;
      if (graph_.node(writer).phase == Phase::kUpdate) continue;
      const auto step = steps.find(writer);
      overwritten_at_[carry.from.index()] = step == steps.end() ? kNever : step->second;
    }
  }

  // The last backward step before which this may run without reading an overwritten value.
  size_t LastStepFor(const Rerun& rerun) const {
    size_t last = kAnyTime;
    for (ValueId output : rerun.outputs) {
      if (IsPersistent(graph_.value(output).role)) return kNever;
    }
    for (ValueId input : rerun.inputs) {
      const size_t step = overwritten_at_[input.index()];
      if (step == kNever) return kNever;
      last = std::min(last, step);
    }
    return last;
  }

  // Whether no schedule runs the node again after one of its inputs was overwritten, if steps from
  // `needed_end` on need none of its outputs.
  bool RunsInTime(size_t f, size_t needed_end) const {
    const size_t last = LastStepFor(chain_.reruns[f]);
    if (last == kAnyTime || last == kNever) return last == kAnyTime;
    return needed_end <= last + 1 && chain_.stage_of_backward[last] <= chain_.stage_of_forward[f];
  }

  // A node that runs again after one of its inputs was overwritten would compute other bits. So its
  // outputs are kept unless no schedule can do that: no later step needs them, directly or through
  // other nodes that run again, and the overwriting step belongs to the node's stage or an earlier
  // one, whose backward comes later. Returns whether there was such a node; handles one at a time,
  // because kept values no longer belong to a stage, which may make other nodes valid.
  bool KeepWhatCannotBeRebuilt() {
    std::vector<size_t> needed_end;  // by value: the step after the last one that needs it, or 0
    for (const ChainValue& value : chain_.values) needed_end.push_back(value.backward_end);
    for (size_t f = chain_.forward.size(); f-- > 0;) {
      const Rerun& rerun = chain_.reruns[f];
      size_t end = 0;
      bool may_drop = false;
      for (ValueId output : rerun.outputs) {
        if (Of(output).kind != ChainValue::Kind::kForward) continue;
        may_drop = true;
        end = std::max(end, needed_end[output.index()]);
      }
      if (!may_drop) continue;
      if (!RunsInTime(f, end)) {
        for (ValueId output : rerun.outputs) Of(output).kind = ChainValue::Kind::kFixed;
        return true;
      }
      for (ValueId input : rerun.inputs) {
        needed_end[input.index()] = std::max(needed_end[input.index()], end);
      }
    }
    return false;
  }

  void FindForwardReaders() {
    for (size_t f = 0; f < chain_.forward.size(); ++f) {
      for (ValueId input : graph_.node(chain_.forward[f]).inputs) {
        ChainValue& value = Of(input);
        value.last = std::max(value.last, chain_.stage_of_forward[f]);
        if (chain_.stage_of_forward[f] > value.first) {
          value.next_reader = std::min(value.next_reader, chain_.stage_of_forward[f]);
        }
      }
    }
  }

  void FindBackwardReaders() {
    for (size_t b = 0; b < chain_.backward.size(); ++b) {
      const Node& node = graph_.node(chain_.backward[b]);
      for (ValueId input : node.inputs) {
        ChainValue& value = Of(input);
        if (value.kind == ChainValue::Kind::kForward) {
          value.last = std::max(value.last, chain_.stage_of_backward[b]);
          value.backward_end = b + 1;
        } else if (value.kind == ChainValue::Kind::kBackward) {
          value.last = std::max(value.last, b);
        }
      }
      for (ValueId output : node.outputs) {
        Of(output).first = b;
        Of(output).last = std::max(Of(output).last, b);
      }
    }
  }

  // The cuts to keep if there are too many: those where few values cross, and not after values that
  // are cheap to rebuild. If a kind of cut fits only partly, its cuts are chosen evenly.
  std::vector<size_t> JoinedStages(size_t max_stages) const {
    std::map<std::pair<bool, size_t>, std::vector<size_t>> kinds;  // positions, best kind first
    for (size_t f = 0; f + 1 < chain_.forward.size(); ++f) {
      size_t crossing = 0;
      for (size_t v = 0; v < chain_.values.size(); ++v) {
        if (chain_.Crosses(ValueId(v), f)) ++crossing;
      }
      const OpDef& op = ops_.Get(graph_.node(chain_.forward[f]).op);
      kinds[{op.cheap_to_rebuild(), crossing}].push_back(f);
    }
    std::vector<bool> cut_behind(chain_.forward.size(), false);
    size_t room = max_stages - 1;
    for (const auto& [kind, positions] : kinds) {
      const size_t taken = std::min(room, positions.size());
      for (size_t k = 0; k < taken; ++k) cut_behind[positions[k * positions.size() / taken]] = true;
      room -= taken;
    }
    std::vector<size_t> stages;
    size_t stage = 0;
    for (size_t f = 0; f < chain_.forward.size(); ++f) {
      stages.push_back(stage);
      if (cut_behind[f]) ++stage;
    }
    return stages;
  }

  size_t ScratchBytes(NodeId node) const {
    return RoundUp(draft_.kernels[node.index()].scratch_bytes, kArenaAlignment);
  }
  ChainValue& Of(ValueId value) { return chain_.values[value.index()]; }

  const PlanDraft& draft_;
  const Graph& graph_;
  const OpRegistry& ops_;
  const PlanOptions& options_;
  Chain chain_;

  static constexpr size_t kAnyTime = std::numeric_limits<size_t>::max();
  static constexpr size_t kNever = kAnyTime - 1;
  std::vector<size_t> overwritten_at_;  // see FindOverwriters
};

}  // namespace

LiveRange Chain::ForwardOf(size_t stage) const {
  const auto [first, end] =
      std::equal_range(stage_of_forward.begin(), stage_of_forward.end(), stage);
  return {static_cast<size_t>(first - stage_of_forward.begin()),
          static_cast<size_t>(end - stage_of_forward.begin())};
}

LiveRange Chain::BackwardOf(size_t stage) const {
  const auto [first, end] =
      std::equal_range(stage_of_backward.begin(), stage_of_backward.end(), stage, std::greater<>());
  return {static_cast<size_t>(first - stage_of_backward.begin()),
          static_cast<size_t>(end - stage_of_backward.begin())};
}

double WorkOf(const Graph& graph, const OpRegistry& ops, const Node& node) {
  const NodeCost cost = CostOf(graph, ops, node);
  return std::max(static_cast<double>(cost.flops), kFlopsPerByte * static_cast<double>(cost.bytes));
}

Result<Chain> MakeChain(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options,
                        size_t max_stages) {
  return ChainBuilder(draft, ops, options).Build(max_stages);
}

}  // namespace thimble
