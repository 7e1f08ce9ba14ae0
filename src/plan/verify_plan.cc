#include "thimble/plan/verify_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "thimble/graph/append_node.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/plan/arena_contents.h"
#include "thimble/plan/verify_plan_layout.h"

namespace thimble {
namespace {

std::string Text(ByteRange range) { return fmt::format("[{}, {})", range.begin, range.end); }

// Simulates the steps of a plan whose layout was verified.
class Player {
 public:
  Player(const OpRegistry& ops, const Plan& plan) : ops_(ops), plan_(plan), graph_(plan.graph) {}

  Result<void> Run() {
    FindOwners();
    THIMBLE_TRY(FillBeforeSteps());
    has_run_.assign(graph_.nodes.size(), false);
    for (step_ = 0; step_ < plan_.steps.size(); ++step_) THIMBLE_TRY(PlayStep());
    return CheckAfterSteps();
  }

 private:
  // Bytes that only the versions of a persistent value may be written to, one after the other, or
  // reserved bytes, which may not be written at all.
  struct Owner {
    ByteRange range;
    std::string_view name;
    ValueId value;  // none if the plan's graph does not have it: the bytes are reserved
    ValueId holds;  // the version that was written last
  };

  template <class... Args>
  Error Wrong(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string what = fmt::format(format, std::forward<Args>(args)...);
    if (step_ == kBefore) return Failed("plan: before the first step: " + what);
    if (step_ >= plan_.steps.size()) return Failed("plan: after the last step: " + what);
    const NodeId id = plan_.steps[step_].node;
    if (!id.valid() || id.index() >= graph_.nodes.size()) {
      return Failed(fmt::format("plan: step {}: {}", step_, what));
    }
    const Node& node = graph_.node(id);
    return Failed(fmt::format("plan: step {} (node {}, {}{}{}): {}", step_, id.index(), node.op,
                              node.layer.empty() ? "" : " in ", node.layer, what));
  }

  // Packed values of a pool share no bytes, but where they are depends on data. So each has a range
  // that stands for its numbers, above the arena.
  ByteRange RangeOf(ValueId id) const {
    const PackedIn& packed = graph_.value(id).packed;
    if (packed.pool.valid()) {
      const size_t begin =
          plan_.arena_bytes + packed.pool.index() * kMaxPacked + static_cast<size_t>(packed.tensor);
      return {begin, begin + 1};
    }
    const size_t offset = plan_.placement(plan_.values[id.index()].buffer).offset;
    return {offset, offset + graph_.value(id).size_bytes()};
  }

  std::string Text(ValueId id) const {
    return fmt::format("'{}' {}", graph_.value(id).name, thimble::Text(RangeOf(id)));
  }

  std::string Text(const ArenaContents::Finding& finding) const {
    const std::string range = thimble::Text(finding.range);
    if (!finding.holding) return fmt::format("{} was never written", range);
    const auto [value, step] = *finding.holding;
    const std::string since =
        step == kBefore ? "from the start" : fmt::format("since step {}", step);
    const std::string what =
        value.valid() ? fmt::format("'{}'", graph_.value(value).name) : "scratch";
    return fmt::format("{} holds {} {}", range, what, since);
  }

  void FindOwners() {
    std::map<std::string_view, ValueId> persistent;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& value = graph_.values[i];
      if (!IsPersistent(value.role) || value.producer.valid()) continue;
      if (value.is_packed()) {
        owners_.push_back({RangeOf(ValueId(i)), value.name, ValueId(i), {}});
      } else {
        persistent[value.name] = ValueId(i);
      }
    }
    for (const Carry& carry : graph_.carries) next_[carry.from] = carry.to;
    for (const Resident& resident : plan_.residents.residents) {
      Owner owner{{resident.offset, resident.offset + resident.size_bytes}, resident.name, {}, {}};
      const auto value = persistent.find(resident.name);
      if (value != persistent.end()) owner.value = value->second;
      owners_.push_back(owner);
    }
    std::sort(owners_.begin(), owners_.end(), [](const Owner& a, const Owner& b) {
      return std::pair(a.range.begin, a.range.end) < std::pair(b.range.begin, b.range.end);
    });
  }

  Result<void> FillBeforeSteps() {
    written_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const ValueId id(i);
      if (graph_.value(id).producer.valid()) continue;
      if (const auto held = contents_.FirstHeld(RangeOf(id))) {
        return Wrong("{} overlaps: {}", Text(id), Text(*held));
      }
      if (plan_.values[i].live.first != 0) {
        return Wrong("{} exists before the first step, but its live range starts at step {}",
                     Text(id), plan_.values[i].live.first);
      }
      THIMBLE_TRY(Write(id));
    }
    return {};
  }

  // The next version that may be written to the owner's bytes: the first before the steps, then one
  // after the other. None if all were written, and for reserved bytes.
  ValueId NextFor(const Owner& owner) const {
    if (step_ == kBefore) return owner.value;
    const auto next = next_.find(owner.holds);
    return next == next_.end() ? ValueId() : next->second;
  }

  // Records the version that owners hold from now on. `writer`: none for scratch.
  Result<void> WriteOverOwners(ByteRange range, ValueId writer) {
    // They are sorted and do not overlap: VerifyPlanLayout has checked it.
    auto owner_at = std::partition_point(owners_.begin(), owners_.end(), [&](const Owner& owner) {
      return owner.range.end <= range.begin;
    });
    for (; owner_at != owners_.end() && owner_at->range.begin < range.end; ++owner_at) {
      Owner& owner = *owner_at;
      if (!owner.range.Overlaps(range)) continue;
      if (!writer.valid() || writer != NextFor(owner)) return WrongOver(owner, range, writer);
      owner.holds = writer;
    }
    return {};
  }

  Error WrongOver(const Owner& owner, ByteRange range, ValueId writer) const {
    std::string why;
    if (!owner.value.valid()) why = ", which is reserved";
    if (owner.holds.valid() && owner.holds != owner.value) {
      why = fmt::format(", which holds '{}'", graph_.value(owner.holds).name);
    }
    return Wrong("{} is written over resident '{}' {}{}",
                 writer.valid() ? Text(writer) : "scratch " + thimble::Text(range), owner.name,
                 thimble::Text(owner.range), why);
  }

  Result<void> Write(ValueId id) {
    THIMBLE_TRY(WriteOverOwners(RangeOf(id), id));
    contents_.Write(RangeOf(id), {id, step_});
    written_[id.index()] = true;
    return {};
  }

  Result<void> PlayStep() {
    THIMBLE_TRY(CheckNode());
    const Node& node = graph_.node(plan_.steps[step_].node);
    for (ValueId input : node.inputs) THIMBLE_TRY(CheckWhole(input, "reads"));
    THIMBLE_TRY(CheckOutputsApart(node));
    THIMBLE_TRY(PlayScratch(node));
    for (ValueId output : node.outputs) THIMBLE_TRY(WriteOutput(output));
    return {};
  }

  Result<void> CheckNode() {
    const NodeId id = plan_.steps[step_].node;
    if (!id.valid() || id.index() >= graph_.nodes.size()) return Wrong("there is no such node");
    if (has_run_[id.index()]) return Wrong("the node has already run");
    has_run_[id.index()] = true;
    const Phase phase = graph_.node(id).phase;
    if (phase < phase_) return Wrong("{} node after a {} node", Name(phase), Name(phase_));
    phase_ = phase;
    return {};
  }

  Result<void> CheckWhole(ValueId id, std::string_view verb) const {
    const bool at_end = step_ >= plan_.steps.size();
    const LiveRange live = plan_.values[id.index()].live;
    if (!written_[id.index()]) return Wrong("{} {}, which is not yet written", verb, Text(id));
    if (const auto other = contents_.FirstOther(RangeOf(id), id)) {
      return Wrong("{} {}, but {}", verb, Text(id), Text(*other));
    }
    if (!at_end && !live.Contains(step_)) {
      return Wrong("{} {} outside its live range [{}, {})", verb, Text(id), live.first, live.end);
    }
    return {};
  }

  // Outputs share no byte with each other, and with an input only as the op allows.
  Result<void> CheckOutputsApart(const Node& node) const {
    const OpDef& op = ops_.Get(node.op);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ByteRange output = RangeOf(node.outputs[o]);
      for (size_t other = 0; other < o; ++other) {
        if (!output.Overlaps(RangeOf(node.outputs[other]))) continue;
        return Wrong("outputs {} and {} overlap", Text(node.outputs[other]), Text(node.outputs[o]));
      }
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ByteRange input = RangeOf(node.inputs[i]);
        if (!output.Overlaps(input)) continue;
        const bool allowed = op.MayReuse(o, i);
        if (allowed && output.begin == input.begin) continue;
        return Wrong("output {} shares bytes with input {}{}", Text(node.outputs[o]),
                     Text(node.inputs[i]),
                     allowed ? " at another offset" : ", which the op does not allow");
      }
    }
    return {};
  }

  Result<void> PlayScratch(const Node& node) {
    const BufferId id = plan_.steps[step_].scratch;
    THIMBLE_ASSIGN_OR_RETURN(const size_t needed_bytes, ScratchBytes(node));
    if (!id.valid()) {
      if (needed_bytes == 0) return {};
      return Wrong("no scratch, but the kernel requires {} bytes", needed_bytes);
    }
    if (id.index() >= plan_.placements.size()) return Wrong("there is no such scratch buffer");
    const Placement& buffer = plan_.placement(id);
    const ByteRange range{buffer.offset, buffer.offset + buffer.size_bytes};
    if (needed_bytes == 0 || buffer.size_bytes < needed_bytes) {
      return Wrong("scratch {} has {} bytes, but the kernel requires {}", thimble::Text(range),
                   buffer.size_bytes, needed_bytes);
    }
    if (!buffer.live.Contains(step_)) {
      return Wrong("scratch {} '{}' is used outside its live range [{}, {})", thimble::Text(range),
                   buffer.name, buffer.live.first, buffer.live.end);
    }
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (ValueId value : *values) {
        if (!range.Overlaps(RangeOf(value))) continue;
        return Wrong("scratch {} overlaps {} {}", thimble::Text(range),
                     values == &node.inputs ? "input" : "output", Text(value));
      }
    }
    THIMBLE_TRY(WriteOverOwners(range, {}));
    contents_.Write(range, {{}, step_});
    return {};
  }

  // The scratch that the step's kernel requires; fails if the kernel cannot run the node.
  Result<size_t> ScratchBytes(const Node& node) const {
    const std::vector<Kernel>& kernels = ops_.Get(node.op).kernels();
    const size_t index = plan_.steps[step_].kernel;
    if (index >= kernels.size()) {
      return Wrong("kernel {}, but the op has {} kernels", index, kernels.size());
    }
    const Kernel& kernel = kernels[index];
    if (kernel.device != plan_.device) {
      return Wrong("kernel '{}' is for {}, the plan is for {}", kernel.name, Name(kernel.device),
                   Name(plan_.device));
    }
    const NodeShapes shapes(graph_, node);
    const std::string_view reason = kernel.declines(shapes.call());
    if (!reason.empty()) return Wrong("kernel '{}' declines: {}", kernel.name, reason);
    return kernel.scratch_bytes(shapes.call(), plan_.limits);
  }

  Result<void> WriteOutput(ValueId id) {
    const LiveRange live = plan_.values[id.index()].live;
    if (!live.Contains(step_)) {
      return Wrong("writes {} outside its live range [{}, {})", Text(id), live.first, live.end);
    }
    return Write(id);
  }

  Result<void> CheckAfterSteps() const {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!has_run_[i]) return Wrong("node {} ({}) has not run", i, graph_.nodes[i].op);
    }
    for (const Owner& owner : owners_) {
      if (!owner.value.valid()) continue;
      ValueId last = owner.value;
      while (next_.contains(last)) last = next_.at(last);
      THIMBLE_TRY(CheckWhole(last, "keeps"));
    }
    for (ValueId output : graph_.outputs) {
      THIMBLE_TRY(CheckWhole(output, "returns"));
      const LiveRange live = plan_.values[output.index()].live;
      if (live.end >= plan_.steps.size()) continue;
      return Wrong("returns {}, whose live range is only [{}, {})", Text(output), live.first,
                   live.end);
    }
    return {};
  }

  static constexpr size_t kBefore = ArenaContents::kBeforeSteps;
  static constexpr size_t kMaxPacked = size_t{1} << 32;  // values of a pool, more than exist

  const OpRegistry& ops_;
  const Plan& plan_;
  const Graph& graph_;
  ArenaContents contents_;
  std::vector<Owner> owners_;        // by address
  std::map<ValueId, ValueId> next_;  // by value: its next version
  std::vector<bool> written_;
  std::vector<bool> has_run_;  // by node
  Phase phase_ = Phase::kForward;
  size_t step_ = kBefore;
};

}  // namespace

Result<void> VerifyPlan(const OpRegistry& ops, const Plan& plan) {
  THIMBLE_TRY(VerifyGraph(plan.graph, ops));
  THIMBLE_TRY(VerifyPlanLayout(plan));
  return Player(ops, plan).Run();
}

}  // namespace thimble
