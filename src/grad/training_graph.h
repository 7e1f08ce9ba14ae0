// Turns a network's forward graph into the graph of one whole update: backward and optimizer. For
// batches trained in parts, makes the graph of a part and that of the update after the last part:
//
//   part:    forward, backward;  sum.w → accumulate(sum.w, dw, seen) …  for each parameter
//   update:  w, momentum.w → sgd_update(w, sum.w, momentum.w, learning_rate) …
//
// Gradients that are used in backward (UpdateSpec::in_backward) have no array: a whole batch
// updates each parameter after the last node that reads it, parts add to the momentum:
//
//   part:    momentum.w → sgd_gather(w, dw, momentum.w, seen) …
//   update:  w → sgd_apply(w, momentum.w, learning_rate) …
//
// If gradients are checked (UpdateSpec::checks_gradients), check_gradients comes before the updates
// and adjust_loss_scale after them. Then an update is skipped as a whole, running statistics
// included. In backward each large gradient has a check of its own, and the small ones, which are
// used at the end, have one together: what is not finite is left out and counted.
#pragma once

#include "thimble/base/result.h"
#include "thimble/grad/update_spec.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// The share of a batch that a part has.
struct BatchShare {
  int64_t samples = 0;  // samples of the part
  int64_t batch = 0;    // samples of the whole batch
};

// Names shared by builder, optimizer and trainer.
inline constexpr const char* kLearningRateInput = "learning_rate";  // f32 [1]
inline constexpr const char* kLossWeightInput = "loss_weight";      // f32 [1], share of the batch
inline constexpr const char* kUpdateInput = "update";               // i32 [1], number of the update
inline constexpr const char* kSeenInput = "seen";             // i32 [1], samples in earlier parts
inline constexpr const char* kLossScaleState = "loss_scale";  // f32 [4] (ops/loss_scale)
inline constexpr const char* kSumPrefix = "sum.";  // + name of the parameter or statistic

// Where gradients go.
struct GradientUse {
  bool in_backward = false;
  std::string why_not = {};  // if it was asked for and is not done
};
Result<GradientUse> ChooseGradientUse(const UpdateSpec& spec, bool in_parts);

// Appends the backward pass from the scalar `loss` and one update per parameter.
Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId loss,
                          const UpdateSpec& spec);

// Turns the forward graph of a part into the whole graph of that part. `loss` is the mean over the
// part; gradients are weighted by its share of the batch (the input kLossWeightInput) and added up,
// and so are the statistics that the forward graph would update. A run with seen = 0 restarts the
// sums.
Result<void> AppendSums(Graph& graph, const OpRegistry& ops, ValueId loss, const UpdateSpec& spec,
                        const BatchShare& share);

// Makes the update from the sums over all parts; `forward` is the forward graph of a part with this
// share.
Result<Graph> MakeUpdateGraph(const Graph& forward, const OpRegistry& ops, const UpdateSpec& spec,
                              const BatchShare& share);

}  // namespace thimble
