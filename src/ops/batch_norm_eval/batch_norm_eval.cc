// batch_norm_eval: normalizes each channel by given (running) statistics, which are constants here:
// evaluation, and training with frozen statistics. With relu=1 negative values become zero. With
// group=m the statistics are (parts, C), those of batch_norm's parts, and y is bit-identical to
// batch_norm's.
#include "thimble/ops/batch_norm_eval/batch_norm_eval.h"

#include <algorithm>
#include <cmath>

#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm/batch_norm_shapes.h"
#include "thimble/ops/batch_norm/reference.h"

namespace thimble {
namespace {

struct BatchNormEvalReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    ForEachChannelPart(call.op, [&](const ChannelPart& part) { RunPart(call, part); });
  }

 private:
  template <class T>
  static void RunPart(const ReferenceCall<T>& call, const ChannelPart& part) {
    using std::sqrt;
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const T mean = call.In(3)[part.statistic];
    const T scale = call.In(1)[part.channel] / sqrt(call.In(4)[part.statistic] + epsilon);
    const T beta = call.In(2)[part.channel];
    part.ForEach([&](int64_t i) {
      const T normalized = (call.In(0)[i] - mean) * scale + beta;
      call.Out(0)[i] = BehindRelu(call.op.attributes, normalized, normalized);
    });
  }
};

struct BatchNormEvalGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.in_shape(1)[0];
    std::fill_n(call.Out(1), channels, T(0));
    std::fill_n(call.Out(2), channels, T(0));
    ForEachChannelPart(call.op, [&](const ChannelPart& part) { RunPart(call, part); });
  }

 private:
  template <class T>
  static void RunPart(const ReferenceCall<T>& call, const ChannelPart& part) {
    using std::sqrt;
    const T epsilon = T(call.op.attributes.Float("epsilon"));
    const T deviation = sqrt(call.In(4)[part.statistic] + epsilon);
    const T scale = call.In(1)[part.channel] / deviation;
    T dgamma = T(0);
    T dbeta = T(0);
    part.ForEach([&](int64_t i) {
      const T centred = call.In(0)[i] - call.In(3)[part.statistic];
      const T normalized = centred * scale + call.In(2)[part.channel];
      const T dy = BehindRelu(call.op.attributes, normalized, call.In(5)[i]);
      dgamma += dy * centred / deviation;
      dbeta += dy;
      call.Out(0)[i] = dy * scale;
    });
    call.Out(1)[part.channel] += dgamma;
    call.Out(2)[part.channel] += dbeta;
  }
};

Result<std::vector<Shape>> BatchNormEvalShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(call.inputs[0]));
  THIMBLE_ASSIGN_OR_RETURN(const Shape statistics, StatisticsShape(call));
  THIMBLE_TRY(RequireShapes({"gamma", "beta"}, call.inputs.subspan(1), channels));
  THIMBLE_TRY(
      RequireShapes({"running_mean", "running_variance"}, call.inputs.subspan(3), statistics));
  return std::vector<Shape>{call.inputs[0]};
}

}  // namespace

OpDef Make_batch_norm_eval() {
  return OpDef("batch_norm_eval")
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("beta", DType::kF32)
      .Input("running_mean", DType::kF32)
      .Input("running_variance", DType::kF32)
      .Output("y")
      .Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0})
      .Attribute("group", int64_t{0})
      .ShapeRule(BatchNormEvalShapes)
      .Gradient([](GradientBuilder& g) {
        const auto gradients = g.Emit("batch_norm_eval_grad",
                                      {g.In("x"), g.In("gamma"), g.In("beta"), g.In("running_mean"),
                                       g.In("running_variance"), g.GradOf("y")},
                                      g.attributes());
        g.AddTo("x", gradients[0]);
        g.AddTo("gamma", gradients[1]);
        g.AddTo("beta", gradients[2]);
      })
      .OutputMayReuse("y", "x")
      .Flops(PerElementAndRelu(3, 1))
      .CpuKernel<BatchNormEvalCpu>("BatchNormEvalCpu")
      .CudaKernel<BatchNormEvalCuda>("BatchNormEvalCuda")
      .Reference<BatchNormEvalReference>();
}

OpDef Make_batch_norm_eval_grad() {
  return OpDef("batch_norm_eval_grad")
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("beta", DType::kF32)
      .Input("running_mean", DType::kF32)
      .Input("running_variance", DType::kF32)
      .Input("dy")
      .Output("dx")
      .Output("dgamma", DType::kF32)
      .Output("dbeta", DType::kF32)
      .Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0})
      .Attribute("group", int64_t{0})
      .ShapeRule(BatchNormGradShapes)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dx", "dy")
      .OutputMayReuse("dx", "x")
      // Sums 4, scaling 1; for ReLU both passes normalize and compare.
      .Flops(PerElementAndRelu(5, 7))
      .CpuKernel<BatchNormEvalGradCpu>("BatchNormEvalGradCpu")
      .CudaKernel<BatchNormEvalGradCuda>("BatchNormEvalGradCuda")
      .Reference<BatchNormEvalGradReference>();
}

}  // namespace thimble
