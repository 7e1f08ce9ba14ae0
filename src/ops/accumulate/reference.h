// accumulate as a formula.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct AccumulateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const bool first = call.template InAs<int32_t>(2)[0] == 0;
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = first ? call.In(1)[i] : call.In(0)[i] + call.In(1)[i];
    }
  }
};

}  // namespace thimble
