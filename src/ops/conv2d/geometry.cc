#include "thimble/ops/conv2d/geometry.h"

#include <fmt/format.h>

namespace thimble {
namespace {

// Far above any practical value; they keep sums and products of sizes from overflowing.
constexpr int64_t kMaxPadding = int64_t{1} << 20;
constexpr int64_t kMaxStride = int64_t{1} << 20;

Result<void> CheckRank(std::string_view name, const Shape& shape, std::string_view axes) {
  if (shape.rank() == 4) return {};
  return BadInput(
      fmt::format("{} has shape {}, expected four dimensions {}", name, ToString(shape), axes));
}

Result<void> CheckWindow(const Conv2dGeometry& g) {
  if (g.stride < 1 || g.stride > kMaxStride) {
    return BadInput(fmt::format("stride {}, expected 1 to {}", g.stride, kMaxStride));
  }
  if (g.padding < 0 || g.padding > kMaxPadding) {
    return BadInput(fmt::format("padding {}, expected 0 to {}", g.padding, kMaxPadding));
  }
  if (g.kernel_height < 1 || g.kernel_width < 1) {
    return BadInput(fmt::format("a kernel of {} x {} is empty", g.kernel_height, g.kernel_width));
  }
  const int64_t padded_height = g.height + 2 * g.padding;
  const int64_t padded_width = g.width + 2 * g.padding;
  if (g.kernel_height > padded_height || g.kernel_width > padded_width) {
    return BadInput(fmt::format("a kernel of {} x {} is larger than the padded input of {} x {}",
                                g.kernel_height, g.kernel_width, padded_height, padded_width));
  }
  return {};
}

// Fills in the output's size.
Result<Conv2dGeometry> Complete(Conv2dGeometry g, int64_t stride, int64_t padding) {
  g.stride = stride;
  g.padding = padding;
  THIMBLE_TRY(CheckWindow(g));
  g.out_height = (g.height + 2 * g.padding - g.kernel_height) / g.stride + 1;
  g.out_width = (g.width + 2 * g.padding - g.kernel_width) / g.stride + 1;
  return g;
}

Result<Conv2dGeometry> CheckOutputGradient(const Conv2dGeometry& g, const Shape& dy) {
  if (dy == g.y_shape()) return g;
  return BadInput(fmt::format("dy has shape {}, expected {}", ToString(dy), ToString(g.y_shape())));
}

}  // namespace

Result<Conv2dGeometry> Conv2dGeometryOf(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& w = call.inputs[1];
  THIMBLE_TRY(CheckRank("x", x, "(batch, height, width, channels)"));
  THIMBLE_TRY(CheckRank("w", w, "(out channels, kernel height, kernel width, channels)"));
  if (x[3] != w[3]) {
    return BadInput(
        fmt::format("x {} has {} channels, w {} expects {}", ToString(x), x[3], ToString(w), w[3]));
  }
  Conv2dGeometry g{.batch = x[0],
                   .height = x[1],
                   .width = x[2],
                   .channels = x[3],
                   .out_channels = w[0],
                   .kernel_height = w[1],
                   .kernel_width = w[2]};
  return Complete(g, call.attributes.Int("stride"), call.attributes.Int("padding"));
}

Result<Conv2dGeometry> Conv2dGradWeightGeometryOf(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& dy = call.inputs[1];
  THIMBLE_TRY(CheckRank("x", x, "(batch, height, width, channels)"));
  THIMBLE_TRY(CheckRank("dy", dy, "(batch, out height, out width, out channels)"));
  Conv2dGeometry g{.batch = x[0],
                   .height = x[1],
                   .width = x[2],
                   .channels = x[3],
                   .out_channels = dy[3],
                   .kernel_height = call.attributes.Int("kernel_height"),
                   .kernel_width = call.attributes.Int("kernel_width")};
  THIMBLE_ASSIGN_OR_RETURN(
      g, Complete(g, call.attributes.Int("stride"), call.attributes.Int("padding")));
  return CheckOutputGradient(g, dy);
}

Result<Conv2dGeometry> Conv2dGradInputGeometryOf(const OpCall& call) {
  const ImageSize image{call.attributes.Int("height"), call.attributes.Int("width")};
  return GradInputGeometry(call.inputs[0], call.inputs[1], image, call.attributes.Int("stride"),
                           call.attributes.Int("padding"));
}

Result<Conv2dGeometry> GradInputGeometry(const Shape& w, const Shape& dy, const ImageSize& image,
                                         int64_t stride, int64_t padding) {
  THIMBLE_TRY(CheckRank("w", w, "(out channels, kernel height, kernel width, channels)"));
  THIMBLE_TRY(CheckRank("dy", dy, "(batch, out height, out width, out channels)"));
  Conv2dGeometry g{.batch = dy[0],
                   .height = image.height,
                   .width = image.width,
                   .channels = w[3],
                   .out_channels = w[0],
                   .kernel_height = w[1],
                   .kernel_width = w[2]};
  if (g.height < 1 || g.width < 1) {
    return BadInput(fmt::format("x of {} x {} pixels, expected at least 1 x 1", g.height, g.width));
  }
  THIMBLE_ASSIGN_OR_RETURN(g, Complete(g, stride, padding));
  return CheckOutputGradient(g, dy);
}

}  // namespace thimble
