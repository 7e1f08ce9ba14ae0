#include "thimble/program/fuse_norm_relu/fuse_norm_relu.h"

#include <fmt/format.h>

#include <vector>

#include "thimble/graph/remove_nodes.h"

namespace thimble {
namespace {

bool IsNorm(const Node& node) {
  return node.op == "batch_norm" || node.op == "batch_norm_eval" || node.op == "group_norm";
}

}  // namespace

void FuseNormRelu(Graph& graph) {
  const std::vector<int> readers = CountReaders(graph);
  std::vector<bool> removed_nodes(graph.nodes.size(), false);
  std::vector<bool> removed_values(graph.values.size(), false);
  for (size_t index = 0; index < graph.nodes.size(); ++index) {
    Node& relu = graph.nodes[index];
    if (relu.op != "relu") continue;
    const ValueId between = relu.inputs[0];
    const NodeId producer = graph.value(between).producer;
    if (!producer.valid() || readers[between.index()] != 1) continue;
    Node& norm = graph.nodes[producer.index()];
    // ReLU applies to y only, not to the other outputs of the norm.
    if (!IsNorm(norm) || norm.outputs[0] != between || norm.attributes.Int("relu") != 0) continue;
    norm.attributes.Set("relu", int64_t{1});
    norm.outputs[0] = relu.outputs[0];
    graph.values[relu.outputs[0].index()].producer = producer;
    removed_nodes[index] = true;
    removed_values[between.index()] = true;
  }
  RemoveNodes(graph, removed_nodes, removed_values);
}

namespace {

class FuseNormReluTechnique final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "norm-relu",
            .what = "compute a norm and the following ReLU in one pass over memory"};
  }
  Result<std::string> ChangeForward(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                    ForwardGraph& forward) const override {
    const size_t before = forward.graph.nodes.size();
    FuseNormRelu(forward.graph);
    const size_t fused = before - forward.graph.nodes.size();
    return fused == 0 ? std::string()
                      : fmt::format("norms fused with the following ReLU: {}", fused);
  }
};

}  // namespace

std::unique_ptr<const Technique> MakeFuseNormRelu() {
  return std::make_unique<FuseNormReluTechnique>();
}

}  // namespace thimble
