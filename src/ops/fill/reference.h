// fill as a formula.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct FillReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = T(call.op.attributes.Float("value"));
    }
  }
};

}  // namespace thimble
