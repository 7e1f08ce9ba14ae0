#include "thimble/program/ghost_batch_norm/ghost_batch_norm.h"

#include <fmt/format.h>

#include <charconv>

#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

// Samples that share statistics; 0: the whole batch.
int64_t GroupOf(std::string_view value) {
  int64_t samples = 0;
  std::from_chars(value.data(), value.data() + value.size(), samples);
  return samples;
}

const Lever& GhostLever() {
  static const Lever lever{
      .name = "bn-group",
      .takes = "N",
      .help = "samples that share batch-norm statistics; 0: the whole batch",
      .what = "normalize parts of the batch with their own statistics",
      .plain = "0",
      .decides_results = true,
      .training_only = true,
      .exactness = [](const Graph& forward, const LeverSetting& setting) {
        const bool lossy = GroupOf(setting.value) > 0 && HasOp(forward, "batch_norm");
        return std::string(Name(lossy ? Exactness::kLossy : Exactness::kSameBits));
      }};
  return lever;
}

class GhostBatchNorm final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "ghost batch norm", .exactness = Exactness::kLossy, .what = GhostLever().what};
  }
  const Lever* lever() const override { return &GhostLever(); }

  Result<std::string> ChangeForward(const std::string& value, const OpRegistry& ops,
                                    ForwardGraph& forward) const override {
    const int64_t group = GroupOf(value);
    if (group == 0 || !forward.training || !HasOp(forward.graph, "batch_norm")) {
      return std::string();
    }
    THIMBLE_TRY(GroupBatchNorms(forward.graph, ops, group));
    const int64_t samples = CutNearlyEqually(forward.samples, group).LargestSize();
    return fmt::format("batch-norm statistics per {} sample{}", samples, samples == 1 ? "" : "s");
  }
};

}  // namespace

Result<void> GroupBatchNorms(Graph& forward, const OpRegistry& ops, int64_t samples) {
  for (size_t index = 0; index < forward.nodes.size(); ++index) {
    Node& node = forward.nodes[index];
    if (node.op != "batch_norm") continue;
    node.attributes.Set("group", samples);
    THIMBLE_TRY(InferOutputShapes(forward, ops, NodeId(index)));
  }
  return {};
}

std::unique_ptr<const Technique> MakeGhostBatchNorm() { return std::make_unique<GhostBatchNorm>(); }

}  // namespace thimble
