#include "thimble/program/fuse_conv_add/fuse_conv_add.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "thimble/graph/remove_nodes.h"

namespace thimble {

void FuseConvAdd(Graph& graph) {
  const std::vector<int> readers = CountReaders(graph);
  std::vector<bool> removed_nodes(graph.nodes.size(), false);
  std::vector<bool> removed_values(graph.values.size(), false);
  for (Node& add : graph.nodes) {
    if (add.op != "add") continue;
    for (const auto& [product, other] : {std::pair<size_t, size_t>{0, 1}, {1, 0}}) {
      const ValueId between = add.inputs[product];
      const NodeId producer = graph.value(between).producer;
      if (!producer.valid() || readers[between.index()] != 1) continue;
      const Node& conv = graph.node(producer);
      if (conv.op != "conv2d") continue;
      Node fused = conv;
      fused.op = "conv2d_add";
      fused.inputs.push_back(add.inputs[other]);
      fused.outputs = add.outputs;
      add = std::move(fused);
      removed_nodes[producer.index()] = true;
      removed_values[between.index()] = true;
      break;
    }
  }
  RemoveNodes(graph, removed_nodes, removed_values);
}

namespace {

class FuseConvAddTechnique final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "conv-add",
            .what = "compute a convolution and the following residual sum in one pass over memory"};
  }
  Result<std::string> ChangeForward(const std::string& /*value*/, const OpRegistry& /*ops*/,
                                    ForwardGraph& forward) const override {
    const size_t before = forward.graph.nodes.size();
    FuseConvAdd(forward.graph);
    const size_t fused = before - forward.graph.nodes.size();
    return fused == 0 ? std::string()
                      : fmt::format("convolutions fused with the following sum: {}", fused);
  }
};

}  // namespace

std::unique_ptr<const Technique> MakeFuseConvAdd() {
  return std::make_unique<FuseConvAddTechnique>();
}

}  // namespace thimble
