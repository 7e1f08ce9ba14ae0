// CPU kernels of sgd_update and sgd_update_plain: one pass, limited by memory bandwidth.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct SgdConstants {
  float learning_rate;
  float momentum;
  float weight_decay;
  bool nesterov;
};

struct SgdUpdateCpu {
  static void Run(const KernelCall& call);
};

struct SgdUpdatePlainCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
