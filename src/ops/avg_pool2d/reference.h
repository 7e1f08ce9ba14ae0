// avg_pool2d and avg_pool2d_grad as formulas.
#pragma once

#include <algorithm>

#include "thimble/graph/reference.h"

namespace thimble {

struct AvgPool2dReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t kernel = call.op.attributes.Int("kernel");
    const int64_t stride = call.op.attributes.Int("stride");
    const Shape& in = call.in_shape(0);    // (B, H, W, C)
    const Shape& out = call.out_shape(0);  // (B, OH, OW, C)
    for (int64_t i = 0; i < out.elements(); ++i) {
      const int64_t c = i % out[3];
      const int64_t left = i / out[3] % out[2] * stride;
      const int64_t top = i / out[3] / out[2] % out[1] * stride;
      const int64_t b = i / out[3] / out[2] / out[1];
      T sum = T(0);
      for (int64_t h = top; h < top + kernel; ++h) {
        for (int64_t w = left; w < left + kernel; ++w) {
          sum += call.In(0)[((b * in[1] + h) * in[2] + w) * in[3] + c];
        }
      }
      call.Out(0)[i] = sum / T(static_cast<double>(kernel * kernel));
    }
  }
};

struct AvgPool2dGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t kernel = call.op.attributes.Int("kernel");
    const int64_t stride = call.op.attributes.Int("stride");
    const Shape& dy = call.in_shape(0);   // (B, OH, OW, C)
    const Shape& dx = call.out_shape(0);  // (B, H, W, C)
    std::fill_n(call.Out(0), dx.elements(), T(0));
    for (int64_t i = 0; i < dy.elements(); ++i) {
      const int64_t c = i % dy[3];
      const int64_t left = i / dy[3] % dy[2] * stride;
      const int64_t top = i / dy[3] / dy[2] % dy[1] * stride;
      const int64_t b = i / dy[3] / dy[2] / dy[1];
      for (int64_t h = top; h < top + kernel; ++h) {
        for (int64_t w = left; w < left + kernel; ++w) {
          call.Out(0)[((b * dx[1] + h) * dx[2] + w) * dx[3] + c] +=
              call.In(0)[i] / T(static_cast<double>(kernel * kernel));
        }
      }
    }
  }
};

}  // namespace thimble
