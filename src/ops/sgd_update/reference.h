// sgd_update and sgd_update_plain as formulas, in PyTorch's convention: the learning rate scales
// the step, not what the momentum gathers.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct SgdUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const Attributes& attributes = call.op.attributes;
    const T momentum = T(attributes.Float("momentum"));
    const T weight_decay = T(attributes.Float("weight_decay"));
    const bool nesterov = attributes.Int("nesterov") != 0;
    const T learning_rate = call.In(3)[0];
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T weight = call.In(0)[i];
      const T slope = call.In(1)[i] + weight_decay * weight;
      const T next_momentum = momentum * call.In(2)[i] + slope;
      const T step = nesterov ? slope + momentum * next_momentum : next_momentum;
      call.Out(0)[i] = weight - learning_rate * step;
      call.Out(1)[i] = next_momentum;
    }
  }
};

struct SgdUpdatePlainReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T weight_decay = T(call.op.attributes.Float("weight_decay"));
    const T learning_rate = call.In(2)[0];
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T weight = call.In(0)[i];
      call.Out(0)[i] = weight - learning_rate * (call.In(1)[i] + weight_decay * weight);
    }
  }
};

}  // namespace thimble
