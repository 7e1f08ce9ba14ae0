// image_normalize as a formula.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct ImageNormalizeReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const std::vector<double>& mean = call.op.attributes.Floats("mean");
    const std::vector<double>& deviation = call.op.attributes.Floats("std");
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const size_t channel = static_cast<size_t>(i) % mean.size();
      const double pixel = call.template InAs<uint8_t>(0)[i];
      call.Out(0)[i] = T((pixel - mean[channel]) / deviation[channel]);
    }
  }
};

}  // namespace thimble
