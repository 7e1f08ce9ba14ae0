// relu and relu_grad as formulas.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct ReluReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T x = call.In(0)[i];
      // Not (x < 0), so that NaN passes through.
      call.Out(0)[i] = RealPart(x) <= 0 ? T(0) : x;
    }
  }
};

struct ReluGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = RealPart(call.In(0)[i]) <= 0 ? T(0) : call.In(1)[i];
    }
  }
};

}  // namespace thimble
