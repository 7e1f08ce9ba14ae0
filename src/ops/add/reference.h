// add as a formula.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct AddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = call.In(0)[i] + call.In(1)[i];
    }
  }
};

}  // namespace thimble
