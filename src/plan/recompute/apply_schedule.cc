#include "thimble/plan/recompute/apply_schedule.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "thimble/base/check.h"

namespace thimble {
namespace {

class Applier {
 public:
  Applier(const PlanDraft& draft, const Chain& chain)
      : from_(draft), chain_(chain), has_run_(chain.forward.size(), false) {
    to_.graph = draft.graph;
    to_.graph.nodes.clear();
    to_.residents = draft.residents;
    to_.decisions = draft.decisions;
    for (size_t v = 0; v < draft.graph.values.size(); ++v) {
      newest_.emplace_back(v);
      names_.insert(draft.graph.values[v].name);
    }
  }

  PlanDraft Run(const RebuildSchedule& schedule) && {
    for (const ChainStep& step : schedule) {
      if (step.backward) {
        RunOnce(chain_.backward[step.position]);
      } else if (!has_run_[step.position]) {
        has_run_[step.position] = true;
        RunOnce(chain_.forward[step.position]);
      } else {
        RunAgain(chain_.forward[step.position], chain_.reruns[step.position]);
      }
    }
    for (NodeId node : chain_.update) RunOnce(node);
    THIMBLE_CHECK(to_.graph.nodes.size() >= from_.graph.nodes.size(),
                  "the schedule does not contain all nodes");
    to_.storage = SeparateStorage(to_.graph);
    return std::move(to_);
  }

 private:
  void RunOnce(NodeId id) {
    Node node = from_.graph.node(id);
    for (ValueId& input : node.inputs) input = newest_[input.index()];
    Append(std::move(node), from_.kernels[id.index()]);
  }

  void RunAgain(NodeId id, const Rerun& rerun) {
    Node node{rerun.op, {}, {}, rerun.attributes, Phase::kBackward, from_.graph.node(id).layer};
    for (ValueId input : rerun.inputs) node.inputs.push_back(newest_[input.index()]);
    for (ValueId output : rerun.outputs) {
      Value value = from_.graph.value(output);
      value.name = NewName(value.name);
      node.outputs.emplace_back(to_.graph.values.size());
      to_.graph.values.push_back(std::move(value));
      // Fixed values still exist; a second copy is dropped immediately.
      const bool dropped = chain_.values[output.index()].kind == ChainValue::Kind::kForward;
      if (dropped) newest_[output.index()] = node.outputs.back();
    }
    Append(std::move(node), rerun.kernel);
  }

  void Append(Node node, const KernelChoice& kernel) {
    const NodeId id(to_.graph.nodes.size());
    for (ValueId output : node.outputs) to_.graph.values[output.index()].producer = id;
    to_.graph.nodes.push_back(std::move(node));
    to_.kernels.push_back(kernel);
    to_.order.push_back(id);
  }

  // "y.again", "y.again2", …
  std::string NewName(const std::string& name) {
    std::string tried = name;
    tried += ".again";
    const size_t stem = tried.size();
    for (int count = 2; !names_.insert(tried).second; ++count) {
      tried.resize(stem);
      tried += std::to_string(count);
    }
    return tried;
  }

  const PlanDraft& from_;
  const Chain& chain_;
  std::vector<bool> has_run_;  // by position in forward
  PlanDraft to_;
  std::vector<ValueId> newest_;  // by value of the old graph: its latest copy
  std::unordered_set<std::string> names_;
};

}  // namespace

PlanDraft ApplySchedule(const PlanDraft& draft, const Chain& chain,
                        const RebuildSchedule& schedule) {
  return Applier(draft, chain).Run(schedule);
}

}  // namespace thimble
