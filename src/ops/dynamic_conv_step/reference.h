// dynamic_conv_step as a formula.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/dynamic_conv_step/sizes.h"
#include "thimble/ops/softmax_formula.h"

namespace thimble {

struct DynamicConvStepReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const StepSizes sizes(call.in_shape(2), call.in_shape(3), call.op.attributes);
    const int64_t position = StepSizes::Position(call.template InAs<int32_t>(4)[0]);
    for (int64_t b = 0; b < sizes.sentences; ++b) {
      for (int64_t n = 0; n < sizes.hypotheses; ++n) {
        for (int64_t h = 0; h < sizes.heads; ++h) ComputeHead(call, sizes, position, b, n, h);
      }
    }
    // The slot is read above.
    for (int64_t i = 0; i < call.in_shape(2).elements(); ++i) call.Out(1)[i] = call.In(2)[i];
    T* slot = call.Out(1) + sizes.SlotOf(position) * sizes.SlotSize();
    std::copy_n(call.In(0), sizes.SlotSize(), slot);
  }

 private:
  template <class T>
  static void ComputeHead(const ReferenceCall<T>& call, const StepSizes& sizes, int64_t position,
                          int64_t b, int64_t n, int64_t h) {
    const T* logits = call.In(1) + sizes.Logit(b, n, h);
    std::vector<T> weights(logits, logits + sizes.taps());
    ReplaceBySoftmax(weights.data(), sizes.taps());
    const int32_t* ancestors = call.template InAs<int32_t>(3) + sizes.Ancestor(b, n);
    T* y = call.Out(0) + sizes.Channel(b, n, h);
    std::fill_n(y, sizes.head_channels(), T(0));
    for (int64_t back = sizes.Earlier(position); back > 0; --back) {
      const int32_t ancestor = ancestors[back - 1];
      if (ancestor < 0 || ancestor >= sizes.hypotheses) {
        std::fill_n(y, sizes.head_channels(), T(std::numeric_limits<double>::quiet_NaN()));
        return;
      }
      const T* x = call.In(2) + sizes.SlotOf(position - back) * sizes.SlotSize() +
                   sizes.Channel(b, ancestor, h);
      AddTap(weights[static_cast<size_t>(sizes.slots - back)], x, sizes.head_channels(), y);
    }
    AddTap(weights.back(), call.In(0) + sizes.Channel(b, n, h), sizes.head_channels(), y);
  }

  template <class T>
  static void AddTap(T weight, const T* x, int64_t channels, T* y) {
    for (int64_t c = 0; c < channels; ++c) y[c] += weight * x[c];
  }
};

}  // namespace thimble
