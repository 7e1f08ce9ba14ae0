// linear: y = x * w transposed + b. x (B, ...) is treated as (B, F), where F is the product of all
// dimensions after the first; w (N, F), b (N), y (B, N).
#include "thimble/ops/linear/linear.h"

#include <fmt/format.h>

#include "thimble/graph/op_def.h"

namespace thimble {
namespace {

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

Result<void> CheckRank(std::string_view name, const Shape& shape, size_t rank) {
  if (shape.rank() == rank) return {};
  return BadInput(fmt::format("{} has shape {}, expected rank {}", name, ToString(shape), rank));
}

// F of x.
Result<int64_t> FeaturesOf(const Shape& x) {
  if (x.rank() < 2)
    return BadInput(fmt::format("x has shape {}, expected (batch, ...)", ToString(x)));
  const auto features = Shape(x.dims().subspan(1)).CheckedElements();
  if (!features) return BadInput(fmt::format("x of shape {} is too large", ToString(x)));
  return *features;
}

Result<std::vector<Shape>> LinearShapes(const OpCall& call) {
  const Shape& w = call.inputs[1];
  const Shape& b = call.inputs[2];
  THIMBLE_ASSIGN_OR_RETURN(const int64_t features, FeaturesOf(call.inputs[0]));
  THIMBLE_TRY(CheckRank("w", w, 2));
  if (w[1] != features) {
    return BadInput(fmt::format("x {} has {} features, w {} expects {}", ToString(call.inputs[0]),
                                features, ToString(w), w[1]));
  }
  if (b != Shape{w[0]}) {
    return BadInput(fmt::format("b has shape {}, expected ({})", ToString(b), w[0]));
  }
  return std::vector<Shape>{{call.inputs[0][0], w[0]}};
}

Result<std::vector<Shape>> LinearGradWeightShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& dy = call.inputs[1];
  THIMBLE_ASSIGN_OR_RETURN(const int64_t features, FeaturesOf(x));
  THIMBLE_TRY(CheckRank("dy", dy, 2));
  if (x[0] != dy[0]) {
    return BadInput(
        fmt::format("x {} and dy {} have different batches", ToString(x), ToString(dy)));
  }
  return std::vector<Shape>{{dy[1], features}};
}

Result<std::vector<Shape>> LinearGradBiasShapes(const OpCall& call) {
  THIMBLE_TRY(CheckRank("dy", call.inputs[0], 2));
  return std::vector<Shape>{{call.inputs[0][1]}};
}

// The shape of x, from the batch size and the attribute.
Result<Shape> InputShape(int64_t batch, const std::vector<int64_t>& sample_dims) {
  if (sample_dims.size() + 1 > Shape::kMaxRank || sample_dims.empty()) {
    return BadInput(fmt::format("sample_dims has {} entries, expected 1 to {}", sample_dims.size(),
                                Shape::kMaxRank - 1));
  }
  std::vector<int64_t> dims = {batch};
  for (int64_t dim : sample_dims) {
    if (dim < 0) return BadInput(fmt::format("sample_dims has a negative entry {}", dim));
    dims.push_back(dim);
  }
  return Shape(dims);
}

Result<std::vector<Shape>> LinearGradInputShapes(const OpCall& call) {
  const Shape& w = call.inputs[0];
  const Shape& dy = call.inputs[1];
  THIMBLE_TRY(CheckRank("w", w, 2));
  THIMBLE_TRY(CheckRank("dy", dy, 2));
  if (w[0] != dy[1]) {
    return BadInput(fmt::format("dy {} has {} outputs, w {} expects {}", ToString(dy), dy[1],
                                ToString(w), w[0]));
  }
  THIMBLE_ASSIGN_OR_RETURN(const Shape x, InputShape(dy[0], call.attributes.Ints("sample_dims")));
  THIMBLE_ASSIGN_OR_RETURN(const int64_t features, FeaturesOf(x));
  if (features != w[1]) {
    return BadInput(
        fmt::format("sample_dims give {} features, w {} expects {}", features, ToString(w), w[1]));
  }
  return std::vector<Shape>{x};
}

void LinearGradient(GradientBuilder& g) {
  const ValueId dy = g.GradOf("y");
  if (g.Wants("w")) g.AddTo("w", g.Emit("linear_grad_weight", {g.In("x"), dy})[0]);
  if (g.Wants("b")) g.AddTo("b", g.Emit("linear_grad_bias", {dy})[0]);
  if (g.Wants("x")) {
    const auto sample_dims = g.ShapeOf(g.In("x")).dims().subspan(1);
    const std::vector<int64_t> attribute(sample_dims.begin(), sample_dims.end());
    g.AddTo("x", g.Emit("linear_grad_input", {g.In("w"), dy}, {{"sample_dims", attribute}})[0]);
  }
}

// A multiplication and an addition for each pair of an element of dy (or y) and a feature.
int64_t ProductFlops(const Shape& y, const Shape& w) { return 2 * y.elements() * w[1]; }

}  // namespace

OpDef Make_linear() {
  return OpDef("linear")
      .Input("x")
      .Input("w")
      .Input("b")
      .Output("y")
      .ShapeRule(&LinearShapes)
      .Gradient(&LinearGradient)
      .Flops([](const OpCall& call) {
        return ProductFlops(call.outputs[0], call.inputs[1]) + call.outputs[0].elements();
      })
      .CpuKernel<LinearCpu>("LinearCpu")
      .CudaKernel<LinearCuda>("LinearCuda")
      .Reference<LinearReference>();
}

OpDef Make_linear_grad_weight() {
  return OpDef("linear_grad_weight")
      .Input("x")
      .Input("dy")
      .Output("dw")
      .ShapeRule(&LinearGradWeightShapes)
      .NoGradient("second derivatives are not supported")
      .Flops([](const OpCall& call) { return ProductFlops(call.inputs[1], call.outputs[0]); })
      .CpuKernel<LinearGradWeightCpu>("LinearGradWeightCpu")
      .CudaKernel<LinearGradWeightCuda>("LinearGradWeightCuda")
      .Reference<LinearGradWeightReference>();
}

OpDef Make_linear_grad_bias() {
  return OpDef("linear_grad_bias")
      .Input("dy")
      .Output("db")
      .ShapeRule(&LinearGradBiasShapes)
      .NoGradient("second derivatives are not supported")
      .Flops(PerInputElement(1))
      .CpuKernel<LinearGradBiasCpu>("LinearGradBiasCpu")
      .CudaKernel<LinearGradBiasCuda>("LinearGradBiasCuda")
      .Reference<LinearGradBiasReference>();
}

OpDef Make_linear_grad_input() {
  return OpDef("linear_grad_input")
      .Input("w")
      .Input("dy")
      .Output("dx")
      // x's dimensions after the batch, which is dy's.
      .Attribute("sample_dims", std::vector<int64_t>{})
      .ShapeRule(&LinearGradInputShapes)
      .NoGradient("second derivatives are not supported")
      .Flops([](const OpCall& call) { return ProductFlops(call.inputs[1], call.inputs[0]); })
      .CpuKernel<LinearGradInputCpu>("LinearGradInputCpu")
      .CudaKernel<LinearGradInputCuda>("LinearGradInputCuda")
      .Reference<LinearGradInputReference>();
}

}  // namespace thimble
