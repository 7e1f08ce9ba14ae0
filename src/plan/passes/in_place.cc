#include "thimble/plan/passes/in_place.h"

#include <fmt/format.h>

#include <algorithm>

namespace thimble {
namespace {

class InPlaceSharing {
 public:
  InPlaceSharing(const PlanDraft& draft, const OpRegistry& ops)
      : graph_(draft.graph),
        ops_(ops),
        order_(draft.order),
        live_(ValueLiveRanges(draft)),
        storage_(SeparateStorage(draft.graph)),
        ends_(graph_.values.size()) {
    for (size_t index = 0; index < ends_.size(); ++index) ends_[index] = live_[index].end;
    // The caller reads graph outputs after the last step, so not even that step may overwrite them.
    for (ValueId output : graph_.outputs) ends_[output.index()] = order_.size() + 1;
  }

  std::vector<ValueId> Run() {
    for (size_t step = 0; step < order_.size(); ++step) {
      const Node& node = graph_.node(order_[step]);
      const OpDef& op = ops_.Get(node.op);
      for (size_t output = 0; output < node.outputs.size(); ++output) {
        for (size_t input = 0; input < node.inputs.size(); ++input) {
          if (MayShare(op, node, output, input, step)) {
            Share(node.outputs[output], node.inputs[input]);
            break;
          }
        }
      }
    }
    return storage_;
  }

 private:
  bool MayShare(const OpDef& op, const Node& node, size_t output, size_t input, size_t step) const {
    const Value& in = graph_.value(node.inputs[input]);
    const Value& out = graph_.value(node.outputs[output]);
    const ValueId root = storage_[node.inputs[input].index()];
    if (in.role == Role::kInput || IsPersistent(in.role) || IsPersistent(out.role)) return false;
    if (in.is_packed() || out.is_packed()) return false;
    if (in.size_bytes() != out.size_bytes()) return false;
    // This step must be the last one that reads the buffer.
    if (ends_[root.index()] != step + 1) return false;
    // Every input in that buffer must allow it, not only this one.
    for (size_t other = 0; other < node.inputs.size(); ++other) {
      if (storage_[node.inputs[other].index()] == root && !op.MayReuse(output, other)) return false;
    }
    // Another output of this node may already use the buffer.
    return std::none_of(node.outputs.begin(), node.outputs.end(),
                        [&](ValueId sibling) { return storage_[sibling.index()] == root; });
  }

  void Share(ValueId output, ValueId input) {
    const ValueId root = storage_[input.index()];
    storage_[output.index()] = root;
    ends_[root.index()] = ends_[output.index()];
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  const std::vector<NodeId>& order_;
  std::vector<LiveRange> live_;
  std::vector<ValueId> storage_;
  std::vector<size_t> ends_;  // by first value of a storage: the step after its last reader
};

class InPlacePass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {.name = "in-place",
            .exactness = Exactness::kSameBits,
            .what = "let outputs overwrite inputs that are no longer needed",
            .decides = Decides::kStorage};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                          const PlanOptions& /*options*/) const override {
    draft.storage = ShareInPlace(draft, ops);
    size_t shared = 0;
    for (size_t index = 0; index < draft.storage.size(); ++index) {
      const Value& value = draft.graph.values[index];
      if (draft.storage[index] == ValueId(index)) continue;
      if (!IsPersistent(value.role) && !value.is_packed()) ++shared;
    }
    return fmt::format("{} values computed in place", shared);
  }
};

}  // namespace

std::vector<ValueId> ShareInPlace(const PlanDraft& draft, const OpRegistry& ops) {
  return InPlaceSharing(draft, ops).Run();
}

std::unique_ptr<PlanPass> MakeInPlacePass() { return std::make_unique<InPlacePass>(); }

}  // namespace thimble
