// Graphs of built-in networks and their plans, for tests of the stages after the model.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/grad/training_graph.h"
#include "thimble/model/image_classifier.h"
#include "thimble/plan/program.h"

namespace thimble {

// Small images and few classes: fast to train on.
ImageSpec TinyImages();

// The network with this name for a batch of this size; aborts if there is none.
Network MakeNetwork(std::string_view model, int64_t batch, Mode mode, const ImageSpec& images = {});

// Forward, backward and update.
Graph TrainingGraph(std::string_view model, int64_t batch, const ImageSpec& images = {},
                    const OptimizerSpec& optimizer = {});
Graph EvaluationGraph(std::string_view model, int64_t batch, const ImageSpec& images = {});

// Plans these graphs with built-in ops; aborts on failure.
Program PlanGraphs(const std::vector<NamedGraph>& graphs, const PlanOptions& options = {});
// The only plan of one graph, above its own persistent values.
Plan PlanGraph(const Graph& graph, const PlanOptions& options = {});

}  // namespace thimble
