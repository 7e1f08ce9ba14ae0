// layer_norm: normalizes each row of x (..., C) by its own mean and (biased) variance, then scales
// by gamma and shifts by beta per channel. The same in training and evaluation; no bit of a row
// depends on other rows, so parts of a batch change only the order in which dgamma and dbeta are
// summed.
//
// Backward reads x, mean and variance, neither y nor beta. To rebuild y the node runs again: its
// statistics cost nothing beside reading x, so there is no op that only applies them.
//
// There is no variant of layer_norm_grad that adds its dx to another gradient either: the networks
// here normalize after each residual sum, which nothing else reads, so the sum so far would always
// be missing. (In a network that normalizes before a branch it would save reading and writing dx
// once more.)
#include "thimble/ops/layer_norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm/batch_norm_shapes.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// The sizes of x (..., C).
struct LayerSizes {
  int64_t channels;
  int64_t rows;
  double count;  // the divisor for means over a row

  explicit LayerSizes(const Shape& x)
      : channels(x[x.rank() - 1]),
        rows(1),
        count(static_cast<double>(std::max<int64_t>(1, channels))) {
    for (size_t axis = 0; axis + 1 < x.rank(); ++axis) rows *= x[axis];
  }
};

struct LayerNormReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::sqrt;
    const LayerSizes sizes(call.in_shape(0));
    for (int64_t row = 0; row < sizes.rows; ++row) {
      const T* x = call.In(0) + row * sizes.channels;
      T sum = T(0);
      for (int64_t c = 0; c < sizes.channels; ++c) sum += x[c];
      const T mean = sum / T(sizes.count);
      T squares = T(0);
      for (int64_t c = 0; c < sizes.channels; ++c) squares += (x[c] - mean) * (x[c] - mean);
      const T variance = squares / T(sizes.count);
      const T deviation = sqrt(variance + T(call.op.attributes.Float("epsilon")));
      T* y = call.Out(0) + row * sizes.channels;
      for (int64_t c = 0; c < sizes.channels; ++c) {
        y[c] = (x[c] - mean) / deviation * call.In(1)[c] + call.In(2)[c];
      }
      call.Out(1)[row] = mean;
      call.Out(2)[row] = variance;
    }
  }
};

struct LayerNormGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const LayerSizes sizes(call.in_shape(0));
    std::fill_n(call.Out(1), sizes.channels, T(0));
    std::fill_n(call.Out(2), sizes.channels, T(0));
    for (int64_t row = 0; row < sizes.rows; ++row) RunRow(call, sizes, row);
  }

 private:
  template <class T>
  static void RunRow(const ReferenceCall<T>& call, const LayerSizes& sizes, int64_t row) {
    using std::sqrt;
    const T deviation = sqrt(call.In(3)[row] + T(call.op.attributes.Float("epsilon")));
    const T* dy = call.In(4) + row * sizes.channels;
    const T* gamma = call.In(1);
    const auto normalized = [&](int64_t c) {
      return (call.In(0)[row * sizes.channels + c] - call.In(2)[row]) / deviation;
    };
    T sum = T(0);
    T product = T(0);
    for (int64_t c = 0; c < sizes.channels; ++c) {
      call.Out(1)[c] += dy[c] * normalized(c);
      call.Out(2)[c] += dy[c];
      sum += gamma[c] * dy[c];
      product += gamma[c] * dy[c] * normalized(c);
    }
    const T count = T(sizes.count);
    for (int64_t c = 0; c < sizes.channels; ++c) {
      call.Out(0)[row * sizes.channels + c] =
          (gamma[c] * dy[c] - sum / count - normalized(c) * product / count) / deviation;
    }
  }
};

// One mean and variance for each row of x (..., C).
Shape RowStatisticsShape(const Shape& x) {
  std::vector<int64_t> dims(x.dims().begin(), x.dims().end());
  dims.pop_back();
  return Shape(dims);
}

Result<std::vector<Shape>> LayerNormShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(call.inputs[0]));
  THIMBLE_TRY(RequireShapes({"gamma", "beta"}, call.inputs.subspan(1), channels));
  const Shape statistics = RowStatisticsShape(call.inputs[0]);
  return std::vector<Shape>{call.inputs[0], statistics, statistics};
}

Result<std::vector<Shape>> LayerNormGradShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(x));
  THIMBLE_TRY(RequireShape("gamma", call.inputs[1], channels));
  THIMBLE_TRY(RequireShapes({"mean", "variance"}, call.inputs.subspan(2), RowStatisticsShape(x)));
  THIMBLE_TRY(RequireShape("dy", call.inputs[4], x));
  return std::vector<Shape>{x, channels, channels};
}

void LayerNormGradient(GradientBuilder& g) {
  const auto gradients = g.Emit(
      "layer_norm_grad",
      {g.In("x"), g.In("gamma"), g.Out("mean"), g.Out("variance"), g.GradOf("y")}, g.attributes());
  g.AddTo("x", gradients[0]);
  g.AddTo("gamma", gradients[1]);
  g.AddTo("beta", gradients[2]);
}

}  // namespace

// Mean and variance never have gradients: only the backward pass reads them.
OpDef Make_layer_norm() {
  return OpDef("layer_norm")
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("beta", DType::kF32)
      .Output("y")
      .Output("mean", DType::kF32)
      .Output("variance", DType::kF32)
      .Attribute("epsilon", 1e-5)
      .ShapeRule(LayerNormShapes)
      .Gradient(LayerNormGradient)
      .OutputMayReuse("y", "x")
      .CheapToRebuild()
      // Mean 1, variance 4 (centre, sum, square, sum), normalizing 4.
      .Flops(PerInputElement(9))
      .CpuKernel<LayerNormCpu>("LayerNormCpu")
      .CudaKernel<LayerNormCuda>("LayerNormCuda")
      .Reference<LayerNormReference>();
}

OpDef Make_layer_norm_grad() {
  return OpDef("layer_norm_grad")
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("mean", DType::kF32)
      .Input("variance", DType::kF32)
      .Input("dy")
      .Output("dx")
      .Output("dgamma", DType::kF32)
      .Output("dbeta", DType::kF32)
      .Attribute("epsilon", 1e-5)
      .ShapeRule(LayerNormGradShapes)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dx", "dy")
      .OutputMayReuse("dx", "x")
      // Normalizing x 2, dgamma and dbeta 3, the sums of a row 4, combining 5.
      .Flops(PerInputElement(14))
      .CpuKernel<LayerNormGradCpu>("LayerNormGradCpu")
      .CudaKernel<LayerNormGradCuda>("LayerNormGradCuda")
      .Reference<LayerNormGradReference>();
}

}  // namespace thimble
