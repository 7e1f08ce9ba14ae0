// conv2d and its two gradients as formulas: sums over pairs of an input and an output pixel that a
// tap of the kernel connects.
#pragma once

#include <algorithm>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/conv2d/geometry.h"

namespace thimble {

// Calls visit(x_pixel, w_tap, y_pixel) for each such pair: the offsets of channel 0 of x at the
// input pixel, of channel 0 of w at output channel 0 and the tap, and of channel 0 of y at the
// output pixel.
template <class Visit>
void ForEachConv2dTap(const Conv2dGeometry& g, Visit visit) {
  for (int64_t y_pixel = 0; y_pixel < g.out_pixels(); ++y_pixel) {
    const int64_t sample = y_pixel / (g.out_height * g.out_width);
    const int64_t top = y_pixel / g.out_width % g.out_height * g.stride - g.padding;
    const int64_t left = y_pixel % g.out_width * g.stride - g.padding;
    for (int64_t tap = 0; tap < g.kernel_height * g.kernel_width; ++tap) {
      const int64_t row = top + tap / g.kernel_width;
      const int64_t column = left + tap % g.kernel_width;
      if (row < 0 || row >= g.height || column < 0 || column >= g.width) continue;
      const int64_t x_pixel = (sample * g.height + row) * g.width + column;
      visit(x_pixel * g.channels, tap * g.channels, y_pixel * g.out_channels);
    }
  }
}

struct Conv2dReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const Conv2dGeometry g = Conv2dGeometryOf(call.op).value();
    const T* x = call.In(0);
    const T* w = call.In(1);
    T* y = call.Out(0);
    std::fill_n(y, call.out_shape(0).elements(), T(0));
    ForEachConv2dTap(g, [&](int64_t x_pixel, int64_t w_tap, int64_t y_pixel) {
      for (int64_t o = 0; o < g.out_channels; ++o) {
        const T* filter = w + o * g.window_elements() + w_tap;
        T sum = y[y_pixel + o];
        for (int64_t c = 0; c < g.channels; ++c) sum += x[x_pixel + c] * filter[c];
        y[y_pixel + o] = sum;
      }
    });
  }
};

struct Conv2dAddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    // norm_conv2d_add may write y where it reads what is added.
    const std::vector<T> other(call.In(2), call.In(2) + call.out_shape(0).elements());
    Conv2dReference::Run(call);
    for (size_t i = 0; i < other.size(); ++i) call.Out(0)[i] += other[i];
  }
};

struct Conv2dGradWeightReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const Conv2dGeometry g = Conv2dGradWeightGeometryOf(call.op).value();
    const T* x = call.In(0);
    const T* dy = call.In(1);
    T* dw = call.Out(0);
    std::fill_n(dw, call.out_shape(0).elements(), T(0));
    ForEachConv2dTap(g, [&](int64_t x_pixel, int64_t w_tap, int64_t y_pixel) {
      for (int64_t o = 0; o < g.out_channels; ++o) {
        for (int64_t c = 0; c < g.channels; ++c) {
          dw[o * g.window_elements() + w_tap + c] += x[x_pixel + c] * dy[y_pixel + o];
        }
      }
    });
  }
};

// Adds to dx.
template <class T>
void AddGradInput(const Conv2dGeometry& g, const T* w, const T* dy, T* dx) {
  ForEachConv2dTap(g, [&](int64_t x_pixel, int64_t w_tap, int64_t y_pixel) {
    for (int64_t o = 0; o < g.out_channels; ++o) {
      for (int64_t c = 0; c < g.channels; ++c) {
        dx[x_pixel + c] += w[o * g.window_elements() + w_tap + c] * dy[y_pixel + o];
      }
    }
  });
}

struct Conv2dGradInputReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    std::fill_n(call.Out(0), call.out_shape(0).elements(), T(0));
    AddGradInput(Conv2dGradInputGeometryOf(call.op).value(), call.In(0), call.In(1), call.Out(0));
  }
};

}  // namespace thimble
