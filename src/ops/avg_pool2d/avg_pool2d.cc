// avg_pool2d: the mean over square windows, without padding; pixels not covered by a whole window
// are ignored. Global pooling is a kernel of the image's size.
#include "thimble/ops/avg_pool2d/avg_pool2d.h"

#include <algorithm>

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

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

// The pooled shape of (B, H, W, C).
Result<Shape> PooledShape(const Attributes& attributes, const Shape& x) {
  const PoolWindow window{attributes.Int("kernel"), attributes.Int("stride")};
  THIMBLE_TRY(RequireAtLeast("kernel", window.kernel, 1));
  THIMBLE_TRY(RequireAtLeast("stride", window.stride, 1));
  if (window.kernel > x[1] || window.kernel > x[2]) {
    return BadInput(
        fmt::format("kernel is {}, larger than the {} x {} image", window.kernel, x[1], x[2]));
  }
  return Shape{x[0], window.Count(x[1]), window.Count(x[2]), x[3]};
}

Result<std::vector<Shape>> AvgPool2dShapes(const OpCall& call) {
  THIMBLE_TRY(RequireRank("x", call.inputs[0], 4, "(B, H, W, C)"));
  THIMBLE_ASSIGN_OR_RETURN(const Shape y, PooledShape(call.attributes, call.inputs[0]));
  return std::vector<Shape>{y};
}

Result<std::vector<Shape>> AvgPool2dGradShapes(const OpCall& call) {
  const Shape& dy = call.inputs[0];
  THIMBLE_TRY(RequireRank("dy", dy, 4, "(B, H, W, C)"));
  THIMBLE_TRY(RequireAtLeast("height", call.attributes.Int("height"), 0));
  THIMBLE_TRY(RequireAtLeast("width", call.attributes.Int("width"), 0));
  const Shape dx{dy[0], call.attributes.Int("height"), call.attributes.Int("width"), dy[3]};
  THIMBLE_ASSIGN_OR_RETURN(const Shape pooled, PooledShape(call.attributes, dx));
  THIMBLE_TRY(RequireShape("dy", dy, pooled));
  return std::vector<Shape>{dx};
}

// One addition for each element of each window.
int64_t PoolFlops(const Shape& pooled, const Attributes& attributes) {
  return pooled.elements() * attributes.Int("kernel") * attributes.Int("kernel");
}

}  // namespace

OpDef Make_avg_pool2d() {
  return OpDef("avg_pool2d")
      .Input("x")
      .Output("y")
      .Attribute("kernel", int64_t{2})
      .Attribute("stride", int64_t{2})
      .ShapeRule(AvgPool2dShapes)
      .Gradient([](GradientBuilder& g) {
        const Shape x = g.ShapeOf(g.In("x"));
        g.AddTo("x", g.Emit("avg_pool2d_grad", {g.GradOf("y")},
                            {{"kernel", g.attributes().Int("kernel")},
                             {"stride", g.attributes().Int("stride")},
                             {"height", x[1]},
                             {"width", x[2]}})[0]);
      })
      .Flops([](const OpCall& call) { return PoolFlops(call.outputs[0], call.attributes); })
      .CpuKernel<AvgPool2dCpu>("AvgPool2dCpu")
      .CudaKernel<AvgPool2dCuda>("AvgPool2dCuda")
      .Reference<AvgPool2dReference>();
}

OpDef Make_avg_pool2d_grad() {
  return OpDef("avg_pool2d_grad")
      .Input("dy")
      .Output("dx")
      .Attribute("kernel", int64_t{2})
      .Attribute("stride", int64_t{2})
      .Attribute("height", int64_t{0})
      .Attribute("width", int64_t{0})
      .ShapeRule(AvgPool2dGradShapes)
      .NoGradient("second derivatives are not supported")
      .Flops([](const OpCall& call) { return PoolFlops(call.inputs[0], call.attributes); })
      .CpuKernel<AvgPool2dGradCpu>("AvgPool2dGradCpu")
      .CudaKernel<AvgPool2dGradCuda>("AvgPool2dGradCuda")
      .Reference<AvgPool2dGradReference>();
}

}  // namespace thimble
