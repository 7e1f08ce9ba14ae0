// UpdateSpec: how gradients become an update of the parameters.
#pragma once

#include <cstdint>
#include <string>

namespace thimble {

// sgd, stochastic gradient descent: d = g + weight_decay * w; m = momentum * m + d;
// w -= lr * (nesterov ? d + momentum * m : m). With momentum 0 there is no momentum array.
// adam: AdamW with beta1, beta2 and epsilon (ops/adam_update), without momentum and nesterov.
struct OptimizerSpec {
  std::string name = "sgd";
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // adam: the second moment of matrices is kept as means of rows and columns (ops/adam_update).
  bool factored = false;
};

// The loss is multiplied by a scale, so that small gradients can be stored in 16 bits, and updates
// divide by it. An update with a gradient that is not finite is skipped.
struct LossScaleSpec {
  double initial = 0;       // 0: the loss is not scaled
  int64_t interval = 2000;  // good updates after which the scale grows; 0: it never changes
  double factor = 2;        // it grows and shrinks by this
  double floor = 1e-4;      // where training stops instead of shrinking it further
};

// Some weights are 0 and not stored (program/sparsity).
struct SparsitySpec {
  double fraction = 0;         // of the weights of sparse layers; 0: all layers are dense
  std::string method = "dsr";  // dsr, set, static: how the others are chosen anew
  std::string layers = {};     // comma-separated patterns of names; empty: the usual ones
  int64_t rewire_every = 0;    // steps; 0: by the length of the run
};

struct UpdateSpec {
  OptimizerSpec optimizer = {};
  LossScaleSpec loss_scale = {};
  double clip = 0;  // largest norm of all gradients together; 0: no limit
  // Each gradient is used as soon as backward has computed it, where the optimizer can do that.
  bool in_backward = false;
  // Round parameters and state that are stored in fewer than 32 bits at random, with this seed.
  bool stochastic_rounding = false;
  uint64_t seed = 1;
  // What rounding takes from a parameter is returned through the optimizer's state. (Ignored where
  // there is no momentum, and by adam.)
  bool error_feedback = false;
  double largest_learning_rate = 0;  // of the schedule, for error feedback

  SparsitySpec sparsity = {};

  // Whether gradients are checked before they are used.
  bool checks_gradients() const { return loss_scale.initial > 0 || clip > 0; }
  double initial_scale() const { return loss_scale.initial > 0 ? loss_scale.initial : 1; }
};

}  // namespace thimble
