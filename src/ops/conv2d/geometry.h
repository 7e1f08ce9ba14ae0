// Conv2dGeometry: the sizes of one convolution, the same for forward and both gradients.
#pragma once

#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/graph/kernel.h"

namespace thimble {

// x (batch, height, width, channels), w (out_channels, kernel_height, kernel_width, channels),
// y (batch, out_height, out_width, out_channels).
struct Conv2dGeometry {
  int64_t batch = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t out_channels = 0;
  int64_t kernel_height = 0;
  int64_t kernel_width = 0;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;

  int64_t out_pixels() const { return batch * out_height * out_width; }
  int64_t window_elements() const { return kernel_height * kernel_width * channels; }
  // A multiplication and an addition per weight and output pixel, including padding.
  int64_t flops() const { return 2 * out_pixels() * out_channels * window_elements(); }
  Shape x_shape() const { return {batch, height, width, channels}; }
  Shape w_shape() const { return {out_channels, kernel_height, kernel_width, channels}; }
  Shape y_shape() const { return {batch, out_height, out_width, out_channels}; }
};

// From the inputs and attributes of each op; fails if they do not match.
Result<Conv2dGeometry> Conv2dGeometryOf(const OpCall& call);            // (x, w)
Result<Conv2dGeometry> Conv2dGradWeightGeometryOf(const OpCall& call);  // (x, dy)
Result<Conv2dGeometry> Conv2dGradInputGeometryOf(const OpCall& call);   // (w, dy)

// Of x.
struct ImageSize {
  int64_t height;
  int64_t width;
};
Result<Conv2dGeometry> GradInputGeometry(const Shape& w, const Shape& dy, const ImageSize& image,
                                         int64_t stride, int64_t padding);

}  // namespace thimble
