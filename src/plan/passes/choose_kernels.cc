#include "thimble/plan/passes/choose_kernels.h"

#include <fmt/format.h>

#include <map>

#include "thimble/base/byte_size.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

bool IsAllowed(const Kernel& kernel, const PlanOptions& options) {
  return kernel.option.empty() || options.kernel_options.contains(std::string(kernel.option));
}

size_t ScratchLimit(const PlanOptions& options) {
  return static_cast<size_t>(options.limits.threads) * options.limits.scratch_bytes_per_thread;
}

std::string Text(size_t bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

Result<KernelChoice> Choose(const OpDef& op, const OpCall& call, const Node& node,
                            const PlanOptions& options) {
  std::string declined;
  for (size_t index = 0; index < op.kernels().size(); ++index) {
    const Kernel& kernel = op.kernels()[index];
    if (kernel.device != options.device || !IsAllowed(kernel, options)) continue;
    const std::string_view reason = kernel.declines(call);
    if (!reason.empty()) {
      declined += fmt::format("; {}: {}", kernel.name, reason);
      continue;
    }
    const size_t scratch_bytes = kernel.scratch_bytes(call, options.limits);
    const size_t limit_bytes = ScratchLimit(options);
    // Another kernel would give other bits, which must not depend on scratch.
    if (!kernel.option.empty() && scratch_bytes > limit_bytes) {
      return BadInput(fmt::format(
          "layer '{}': {} needs {} of scratch memory, but {} are allowed for {} threads; "
          "raise --scratch, or do not use '{}'",
          node.layer, node.op, Text(scratch_bytes), Text(limit_bytes), options.limits.threads,
          kernel.option));
    }
    return KernelChoice{index, scratch_bytes};
  }
  return BadInput(fmt::format("layer '{}': no {} kernel runs op '{}'{}", node.layer,
                              Name(options.device), node.op, declined));
}

class ChooseKernelsPass final : public PlanPass {
 public:
  PassInfo Info() const override {
    // Recorded only if requested kernels were used, which round differently.
    return {.name = "kernels",
            .exactness = Exactness::kEqual,
            .what = "use the requested kernels",
            .required = true};
  }

  Result<std::string> Run(PlanDraft& draft, const OpRegistry& ops,
                          const PlanOptions& options) const override {
    draft.kernels.clear();
    std::map<std::string_view, int> chosen;  // requested kernels, by option
    for (const Node& node : draft.graph.nodes) {
      THIMBLE_ASSIGN_OR_RETURN(KernelChoice choice, ChooseKernel(draft.graph, ops, node, options));
      draft.kernels.push_back(choice);
      const std::string_view option = ops.Get(node.op).kernels()[choice.kernel].option;
      if (!option.empty()) ++chosen[option];
    }
    std::string what;
    for (const auto& [option, nodes] : chosen) {
      what += fmt::format("{}{} for {} of {} nodes", what.empty() ? "" : ", ", option, nodes,
                          draft.kernels.size());
    }
    return what;
  }
};

}  // namespace

Result<KernelChoice> ChooseKernel(const Graph& graph, const OpRegistry& ops, const Node& node,
                                  const PlanOptions& options) {
  const NodeShapes shapes(graph, node);
  return Choose(ops.Get(node.op), shapes.call(), node, options);
}

std::unique_ptr<PlanPass> MakeChooseKernelsPass() { return std::make_unique<ChooseKernelsPass>(); }

}  // namespace thimble
