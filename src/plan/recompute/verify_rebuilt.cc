#include "thimble/plan/recompute/verify_rebuilt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace thimble {
namespace {

class RebuiltVerifier {
 public:
  RebuiltVerifier(const Graph& original, const Graph& rebuilt, const OpRegistry& ops)
      : original_(original), rebuilt_(rebuilt), ops_(ops) {}

  Result<void> Run() {
    const size_t known = original_.values.size();
    if (rebuilt_.values.size() < known) return Wrong("values are missing");
    stands_for_.resize(rebuilt_.values.size());
    for (size_t v = 0; v < known; ++v) stands_for_[v] = ValueId(v);
    JoinEqualValues();
    size_t originals = 0;
    for (const Node& node : rebuilt_.nodes) {
      if (node.outputs.empty()) return Wrong(fmt::format("{} has no outputs", node.op));
      const bool is_original = node.outputs[0].index() < known;
      THIMBLE_TRY(is_original ? CheckOriginal(node) : CheckRebuild(node));
      originals += is_original ? 1 : 0;
    }
    if (originals != original_.nodes.size()) {
      return Wrong(fmt::format("only {} of {} nodes exist", originals, original_.nodes.size()));
    }
    if (rebuilt_.outputs != original_.outputs || rebuilt_.carries != original_.carries) {
      return Wrong("outputs or carries differ");
    }
    return {};
  }

 private:
  static Error Wrong(const std::string& what) { return Failed("rebuilt graph: " + what); }

  // Two forward nodes may compute the same from the same inputs; a rebuilt value then stands for
  // both.
  void JoinEqualValues() {
    std::map<std::pair<std::string_view, std::vector<ValueId>>, std::vector<const Node*>> seen;
    for (const Node& node : original_.nodes) {
      if (node.phase != Phase::kForward) continue;
      auto& alike = seen[{node.op, StandFor(node.inputs)}];
      const auto equal = std::find_if(alike.begin(), alike.end(), [&](const Node* other) {
        return other->attributes == node.attributes;
      });
      if (equal == alike.end()) {
        alike.push_back(&node);
        continue;
      }
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        stands_for_[node.outputs[o].index()] = stands_for_[(*equal)->outputs[o].index()];
      }
    }
  }

  std::vector<ValueId> StandFor(const std::vector<ValueId>& values) const {
    std::vector<ValueId> result;
    for (ValueId value : values) result.push_back(stands_for_[value.index()]);
    return result;
  }

  Result<void> CheckOriginal(const Node& node) const {
    const Node& expected = original_.node(original_.value(node.outputs[0]).producer);
    if (node.op == expected.op && node.attributes == expected.attributes &&
        node.phase == expected.phase && node.outputs == expected.outputs &&
        StandFor(node.inputs) == StandFor(expected.inputs)) {
      return {};
    }
    return Wrong(fmt::format("'{}' is made by a different node", Name(node.outputs[0])));
  }

  std::string Name(ValueId value) const { return rebuilt_.value(value).name; }

  // A new value stands for one that this node would have made from the same inputs.
  Result<void> CheckRebuild(const Node& node) {
    for (const Node& maker : original_.nodes) {
      if (maker.phase != Phase::kForward || maker.layer != node.layer) continue;
      if (!Repeats(node, maker) && !RebuildsByRule(node, maker)) continue;
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        const Value& value = rebuilt_.value(node.outputs[o]);
        const Value& meant = original_.value(maker.outputs[o]);
        if (value.shape != meant.shape || value.dtype != meant.dtype || value.role != meant.role) {
          return Wrong(fmt::format("'{}' does not match '{}'", value.name, meant.name));
        }
        stands_for_[node.outputs[o].index()] = stands_for_[maker.outputs[o].index()];
      }
      if (node.phase != Phase::kBackward) {
        return Wrong(fmt::format("'{}' is rebuilt outside backward", Name(node.outputs[0])));
      }
      return {};
    }
    return Wrong(fmt::format("no value is rebuilt by '{}'", Name(node.outputs[0])));
  }

  bool Repeats(const Node& node, const Node& maker) const {
    return node.op == maker.op && node.attributes == maker.attributes &&
           node.outputs.size() == maker.outputs.size() &&
           StandFor(node.inputs) == StandFor(maker.inputs);
  }

  bool RebuildsByRule(const Node& node, const Node& maker) const {
    const RebuildRule& rule = ops_.Get(maker.op).rebuild_rule();
    if (rule.op != node.op || node.outputs.size() != 1) return false;
    std::vector<ValueId> inputs;
    for (size_t port : rule.inputs) inputs.push_back(maker.inputs[port]);
    for (size_t port : rule.outputs) inputs.push_back(maker.outputs[port]);
    if (StandFor(node.inputs) != StandFor(inputs)) return false;
    for (const auto& [name, value] : node.attributes.entries()) {
      const AttributeValue* given = maker.attributes.Find(name);
      if (given != nullptr && !(*given == value)) return false;
    }
    return true;
  }

  const Graph& original_;
  const Graph& rebuilt_;
  const OpRegistry& ops_;
  std::vector<ValueId>
      stands_for_;  // by value of the rebuilt graph: the first equal value of the original
};

}  // namespace

Result<void> VerifyRebuilt(const Graph& original, const Graph& rebuilt, const OpRegistry& ops) {
  return RebuiltVerifier(original, rebuilt, ops).Run();
}

}  // namespace thimble
