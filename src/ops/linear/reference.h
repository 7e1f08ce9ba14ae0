// linear and its gradients as formulas. x counts as (B, F) whatever its rank.
#pragma once

#include "thimble/graph/reference.h"

namespace thimble {

struct LinearReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t batch = call.out_shape(0)[0];
    const int64_t outputs = call.in_shape(1)[0];
    const int64_t features = call.in_shape(1)[1];
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t n = 0; n < outputs; ++n) {
        T sum(0);
        for (int64_t f = 0; f < features; ++f) {
          sum += call.In(0)[i * features + f] * call.In(1)[n * features + f];
        }
        call.Out(0)[i * outputs + n] = sum + call.In(2)[n];
      }
    }
  }
};

struct LinearGradWeightReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t batch = call.in_shape(1)[0];
    const int64_t outputs = call.out_shape(0)[0];
    const int64_t features = call.out_shape(0)[1];
    for (int64_t n = 0; n < outputs; ++n) {
      for (int64_t f = 0; f < features; ++f) {
        T sum(0);
        for (int64_t i = 0; i < batch; ++i) {
          sum += call.In(0)[i * features + f] * call.In(1)[i * outputs + n];
        }
        call.Out(0)[n * features + f] = sum;
      }
    }
  }
};

struct LinearGradBiasReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t batch = call.in_shape(0)[0];
    const int64_t outputs = call.in_shape(0)[1];
    for (int64_t n = 0; n < outputs; ++n) {
      T sum(0);
      for (int64_t i = 0; i < batch; ++i) sum += call.In(0)[i * outputs + n];
      call.Out(0)[n] = sum;
    }
  }
};

struct LinearGradInputReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t batch = call.in_shape(1)[0];
    const int64_t outputs = call.in_shape(0)[0];
    const int64_t features = call.in_shape(0)[1];
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t f = 0; f < features; ++f) {
        T sum(0);
        for (int64_t n = 0; n < outputs; ++n) {
          sum += call.In(0)[n * features + f] * call.In(1)[i * outputs + n];
        }
        call.Out(0)[i * features + f] = sum;
      }
    }
  }
};

}  // namespace thimble
