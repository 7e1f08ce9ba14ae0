#include "thimble/plan/passes/choose_kernels.h"

#include <fmt/format.h>

#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

Result<KernelChoice> Choose(const OpDef& op, const OpCall& call, const Node& node,
                            const PlanOptions& options) {
  std::string declined;
  for (size_t index = 0; index < op.kernels().size(); ++index) {
    const Kernel& kernel = op.kernels()[index];
    if (kernel.device != options.device) continue;
    const std::string_view reason = kernel.declines(call);
    if (reason.empty()) return KernelChoice{index, kernel.scratch_bytes(call, options.limits)};
    declined += fmt::format("; {}: {}", kernel.name, reason);
  }
  return BadInput(fmt::format("layer '{}': no {} kernel runs op '{}'{}", node.layer,
                              Name(options.device), node.op, declined));
}

class ChooseKernelsPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    return {"kernels", Exactness::kSameBits, "choose a kernel for every node"};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                          const PlanOptions& options) const override {
    draft.kernels.clear();
    for (const Node& node : draft.graph.nodes) {
      const NodeShapes shapes(draft.graph, node);
      THIMBLE_ASSIGN_OR_RETURN(KernelChoice choice,
                               Choose(ops.Get(node.op), shapes.call(), node, options));
      draft.kernels.push_back(choice);
    }
    return fmt::format("{} nodes", draft.kernels.size());
  }
};

}  // namespace

std::unique_ptr<PlanPass> MakeChooseKernelsPass() { return std::make_unique<ChooseKernelsPass>(); }

}  // namespace thimble
