// batch_norm_update as a formula.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct BatchNormUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const double momentum = call.op.attributes.Float("momentum");
    const double count = static_cast<double>(call.op.attributes.Int("count"));
    const double unbias = count > 1 ? count / (count - 1) : 1;
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = T(1 - momentum) * call.In(0)[i] + T(momentum) * call.In(2)[i];
      call.Out(1)[i] = T(1 - momentum) * call.In(1)[i] + T(momentum * unbias) * call.In(3)[i];
    }
  }
};

}  // namespace thimble
