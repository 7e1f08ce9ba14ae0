// linear: y = x * w transposed + b. The first `row_dims` dimensions of x count rows, the others the
// features of a row: x (B, ...) is treated as (B, F), and with row_dims = 2, for sequences, x
// (B, T, F) gives y (B, T, N). w (N, F); b (N) may be left out.
#include "thimble/ops/linear/linear.h"

#include <fmt/format.h>

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct LinearReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t rows = LinearRows(call.out_shape(0));
    const int64_t outputs = call.in_shape(1)[0];
    const int64_t features = call.in_shape(1)[1];
    const bool biased = call.inputs.size() > 2;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t n = 0; n < outputs; ++n) {
        T sum(0);
        for (int64_t f = 0; f < features; ++f) {
          sum += call.In(0)[i * features + f] * call.In(1)[n * features + f];
        }
        call.Out(0)[i * outputs + n] = biased ? sum + call.In(2)[n] : sum;
      }
    }
  }
};

struct LinearGradWeightReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t rows = LinearRows(call.in_shape(1));
    const int64_t outputs = call.out_shape(0)[0];
    const int64_t features = call.out_shape(0)[1];
    for (int64_t n = 0; n < outputs; ++n) {
      for (int64_t f = 0; f < features; ++f) {
        T sum(0);
        for (int64_t i = 0; i < rows; ++i) {
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
    const int64_t rows = LinearRows(call.in_shape(0));
    const int64_t outputs = call.out_shape(0)[0];
    for (int64_t n = 0; n < outputs; ++n) {
      T sum(0);
      for (int64_t i = 0; i < rows; ++i) sum += call.In(0)[i * outputs + n];
      call.Out(0)[n] = sum;
    }
  }
};

struct LinearGradInputReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t rows = LinearRows(call.in_shape(1));
    const int64_t outputs = call.in_shape(0)[0];
    const int64_t features = call.in_shape(0)[1];
    for (int64_t i = 0; i < rows; ++i) {
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

// dy has rows in all dimensions but the last.
Result<size_t> RowDimsOf(const Shape& dy) {
  if (dy.rank() >= 2) return dy.rank() - 1;
  return BadInput(fmt::format("dy has shape {}, expected (batch, ..., outputs)", ToString(dy)));
}

// F of x, which must have dimensions after those of its rows.
Result<int64_t> FeaturesOf(const Shape& x, size_t row_dims) {
  if (x.rank() <= row_dims) {
    return BadInput(row_dims == 1
                        ? fmt::format("x has shape {}, expected (batch, ...)", ToString(x))
                        : fmt::format("x has shape {}, expected more than {} dimensions of rows",
                                      ToString(x), row_dims));
  }
  const auto features = Shape(x.dims().subspan(row_dims)).CheckedElements();
  if (!features) return BadInput(fmt::format("x of shape {} is too large", ToString(x)));
  return *features;
}

// The first `row_dims` dimensions of `x`, then one of this size.
Shape WithRowsOf(const Shape& x, size_t row_dims, int64_t outputs) {
  std::vector<int64_t> dims(x.dims().begin(), x.dims().begin() + static_cast<ptrdiff_t>(row_dims));
  dims.push_back(outputs);
  return Shape(dims);
}

Result<std::vector<Shape>> LinearShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& w = call.inputs[1];
  const int64_t row_dims = call.attributes.Int("row_dims");
  THIMBLE_TRY(RequireAtLeast("row_dims", row_dims, 1));
  THIMBLE_ASSIGN_OR_RETURN(const int64_t features, FeaturesOf(x, static_cast<size_t>(row_dims)));
  THIMBLE_TRY(CheckRank("w", w, 2));
  if (w[1] != features) {
    return BadInput(fmt::format("x {} has {} features, w {} expects {}", ToString(x), features,
                                ToString(w), w[1]));
  }
  if (call.inputs.size() > 2 && call.inputs[2] != Shape{w[0]}) {
    return BadInput(fmt::format("b has shape {}, expected ({})", ToString(call.inputs[2]), w[0]));
  }
  return std::vector<Shape>{WithRowsOf(x, static_cast<size_t>(row_dims), w[0])};
}

Result<std::vector<Shape>> LinearGradWeightShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& dy = call.inputs[1];
  THIMBLE_ASSIGN_OR_RETURN(const size_t row_dims, RowDimsOf(dy));
  THIMBLE_ASSIGN_OR_RETURN(const int64_t features, FeaturesOf(x, row_dims));
  const int64_t outputs = dy[row_dims];
  if (WithRowsOf(x, row_dims, outputs) != dy) {
    return BadInput(
        fmt::format("x {} and dy {} have different batches", ToString(x), ToString(dy)));
  }
  return std::vector<Shape>{{outputs, features}};
}

Result<std::vector<Shape>> LinearGradBiasShapes(const OpCall& call) {
  const Shape& dy = call.inputs[0];
  THIMBLE_ASSIGN_OR_RETURN(const size_t row_dims, RowDimsOf(dy));
  return std::vector<Shape>{{dy[row_dims]}};
}

// The shape of x, from the rows of dy and the attribute.
Result<Shape> InputShape(const Shape& dy, size_t row_dims,
                         const std::vector<int64_t>& sample_dims) {
  if (sample_dims.size() + row_dims > Shape::kMaxRank || sample_dims.empty()) {
    return BadInput(fmt::format("sample_dims has {} entries, expected 1 to {}", sample_dims.size(),
                                Shape::kMaxRank - row_dims));
  }
  std::vector<int64_t> dims(dy.dims().begin(), dy.dims().end() - 1);
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
  THIMBLE_ASSIGN_OR_RETURN(const size_t row_dims, RowDimsOf(dy));
  const int64_t outputs = dy[row_dims];
  if (w[0] != outputs) {
    return BadInput(fmt::format("dy {} has {} outputs, w {} expects {}", ToString(dy), outputs,
                                ToString(w), w[0]));
  }
  THIMBLE_ASSIGN_OR_RETURN(const Shape x,
                           InputShape(dy, row_dims, call.attributes.Ints("sample_dims")));
  THIMBLE_ASSIGN_OR_RETURN(const int64_t features, FeaturesOf(x, row_dims));
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
    const auto row_dims = static_cast<size_t>(g.attributes().Int("row_dims"));
    const auto sample_dims = g.ShapeOf(g.In("x")).dims().subspan(row_dims);
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
      .OptionalInput("b")
      .Output("y")
      .Attribute("row_dims", int64_t{1})
      .ShapeRule(&LinearShapes)
      .Gradient(&LinearGradient)
      .Flops([](const OpCall& call) {
        const int64_t additions = call.inputs.size() > 2 ? call.outputs[0].elements() : 0;
        return ProductFlops(call.outputs[0], call.inputs[1]) + additions;
      })
      .CpuKernel<LinearCpu>("LinearCpu")
      .CudaKernel<LinearShortCuda>("LinearShortCuda")
      .CudaKernel<LinearFp32Cuda>("LinearFp32Cuda")
      .CudaKernel<LinearTf32Cuda>("LinearTf32Cuda")
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
      .CudaKernel<LinearGradWeightShortCuda>("LinearGradWeightShortCuda")
      .CudaKernel<LinearGradWeightFp32Cuda>("LinearGradWeightFp32Cuda")
      .CudaKernel<LinearGradWeightTf32Cuda>("LinearGradWeightTf32Cuda")
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
      // x's dimensions after those of its rows, which are dy's.
      .Attribute("sample_dims", std::vector<int64_t>{})
      .ShapeRule(&LinearGradInputShapes)
      .NoGradient("second derivatives are not supported")
      .Flops([](const OpCall& call) { return ProductFlops(call.inputs[1], call.inputs[0]); })
      .CpuKernel<LinearGradInputCpu>("LinearGradInputCpu")
      .CudaKernel<LinearGradInputShortCuda>("LinearGradInputShortCuda")
      .CudaKernel<LinearGradInputFp32Cuda>("LinearGradInputFp32Cuda")
      .CudaKernel<LinearGradInputTf32Cuda>("LinearGradInputTf32Cuda")
      .CudaKernel<LinearGradInputCuda>("LinearGradInputCuda")
      .Reference<LinearGradInputReference>();
}

}  // namespace thimble
