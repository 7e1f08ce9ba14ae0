#include "tests/support/model_graphs.h"

#include "thimble/base/check.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/program/fuse_conv_add/fuse_conv_add.h"
#include "thimble/program/fuse_norm_relu/fuse_norm_relu.h"

namespace thimble {

ImageSpec TinyImages() {
  ImageSpec images;
  images.height = 8;
  images.width = 8;
  images.classes = 4;
  return images;
}

Network MakeNetwork(std::string_view model, int64_t batch, Mode mode, const ImageSpec& images) {
  const auto classifier = FindModel(model, images);
  THIMBLE_CHECK(classifier.ok(), "{}", classifier.error().message);
  auto network = BuildNetwork(*classifier, BuiltinOps(), batch, mode);
  THIMBLE_CHECK(network.ok(), "{}", network.error().message);
  FuseNormRelu(network->graph);
  FuseConvAdd(network->graph);
  network->loss = network->graph.Find(kLossOutput);
  return std::move(network).value();
}

Graph TrainingGraph(std::string_view model, int64_t batch, const ImageSpec& images,
                    const OptimizerSpec& optimizer) {
  Network network = MakeNetwork(model, batch, Mode::kTrain, images);
  const auto appended =
      AppendUpdate(network.graph, BuiltinOps(), network.loss, {.optimizer = optimizer});
  THIMBLE_CHECK(appended.ok(), "{}", appended.error().message);
  return std::move(network.graph);
}

Graph EvaluationGraph(std::string_view model, int64_t batch, const ImageSpec& images) {
  return MakeNetwork(model, batch, Mode::kEvaluate, images).graph;
}

Program PlanGraphs(const std::vector<NamedGraph>& graphs, const PlanOptions& options) {
  auto program = PlanProgram(graphs, BuiltinOps(), {}, options);
  THIMBLE_CHECK(program.ok(), "{}", program.error().message);
  return std::move(program).value();
}

Plan PlanGraph(const Graph& graph, const PlanOptions& options) {
  return std::move(PlanGraphs({{"plan", graph}}, options).plans.front());
}

}  // namespace thimble
