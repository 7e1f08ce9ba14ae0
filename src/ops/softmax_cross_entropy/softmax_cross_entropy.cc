// softmax_cross_entropy: the loss of a classifier, sum over the batch of -log
// softmax(logits)[label], divided by `divisor` (the number of rows gives the mean, also with
// microbatches, whose share of the whole batch is in `dloss`). `correct` counts the rows whose
// first largest logit is the label's. A label out of range counts as wrong and makes the loss NaN.
#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy.h"

#include <cmath>
#include <limits>

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"
#include "thimble/ops/softmax_formula.h"

namespace thimble {
namespace {

// Sum of exp(row - largest) over the row (N). The shift is treated as a constant in the derivative,
// because its effect cancels.
template <class T>
T SumOfExponentials(const T* row, int64_t classes, double largest) {
  using std::exp;
  T sum = T(0);
  for (int64_t n = 0; n < classes; ++n) sum += exp(row[n] - T(largest));
  return sum;
}

struct SoftmaxCrossEntropyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::log;
    const int64_t classes = call.in_shape(0)[1];
    T loss = T(0);
    int32_t correct = 0;
    for (int64_t b = 0; b < call.in_shape(0)[0]; ++b) {
      const T* row = call.In(0) + b * classes;
      const int32_t label = call.template InAs<int32_t>(1)[b];
      if (label < 0 || label >= classes) {
        loss += T(std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const int64_t best = FirstMaximum(row, classes);
      const double largest = RealPart(row[best]);
      loss += log(SumOfExponentials(row, classes, largest)) - (row[label] - T(largest));
      correct += best == label ? 1 : 0;
    }
    call.Out(0)[0] = loss / T(call.op.attributes.Float("divisor"));
    call.template OutAs<int32_t>(1)[0] = correct;
  }
};

struct SoftmaxCrossEntropyGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    using std::exp;
    const int64_t classes = call.in_shape(0)[1];
    const T factor = call.In(2)[0] / T(call.op.attributes.Float("divisor"));
    for (int64_t b = 0; b < call.in_shape(0)[0]; ++b) {
      const T* row = call.In(0) + b * classes;
      T* out = call.Out(0) + b * classes;
      const int32_t label = call.template InAs<int32_t>(1)[b];
      const bool in_range = label >= 0 && label < classes;
      const double largest = classes > 0 ? RealPart(row[FirstMaximum(row, classes)]) : 0;
      const T sum = SumOfExponentials(row, classes, largest);
      for (int64_t n = 0; n < classes; ++n) {
        const T probability = exp(row[n] - T(largest)) / sum;
        out[n] = in_range ? (probability - T(n == label ? 1 : 0)) * factor
                          : T(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
};

Result<void> CheckLogitsAndLabels(const OpCall& call) {
  THIMBLE_TRY(RequireRank("logits", call.inputs[0], 2, "(B, N)"));
  THIMBLE_TRY(RequireShape("labels", call.inputs[1], Shape{call.inputs[0][0]}));
  const double divisor = call.attributes.Float("divisor");
  if (!(divisor > 0)) return BadInput(fmt::format("divisor is {}, expected > 0", divisor));
  return {};
}

Result<std::vector<Shape>> SoftmaxCrossEntropyShapes(const OpCall& call) {
  THIMBLE_TRY(CheckLogitsAndLabels(call));
  return std::vector<Shape>{Shape{1}, Shape{1}};
}

Result<std::vector<Shape>> SoftmaxCrossEntropyGradShapes(const OpCall& call) {
  THIMBLE_TRY(CheckLogitsAndLabels(call));
  THIMBLE_TRY(RequireShape("dloss", call.inputs[2], Shape{1}));
  return std::vector<Shape>{call.inputs[0]};
}

}  // namespace

OpDef Make_softmax_cross_entropy() {
  return OpDef("softmax_cross_entropy")
      .Input("logits", DType::kF32)
      .Input("labels", DType::kI32)
      .Output("loss", DType::kF32)
      .Output("correct", DType::kI32)
      .Attribute("divisor", 1.0)
      .ShapeRule(SoftmaxCrossEntropyShapes)
      .Gradient([](GradientBuilder& g) {
        g.AddTo("logits", g.Emit("softmax_cross_entropy_grad",
                                 {g.In("logits"), g.In("labels"), g.GradOf("loss")},
                                 {{"divisor", g.attributes().Float("divisor")}})[0]);
      })
      // Comparing, shifting, the exponential (about 15) and its sum.
      .Flops(PerInputElement(18))
      .CpuKernel<SoftmaxCrossEntropyCpu>("SoftmaxCrossEntropyCpu")
      .CudaKernel<SoftmaxCrossEntropyCuda>("SoftmaxCrossEntropyCuda")
      .Reference<SoftmaxCrossEntropyReference>();
}

OpDef Make_softmax_cross_entropy_grad() {
  return OpDef("softmax_cross_entropy_grad")
      .Input("logits", DType::kF32)
      .Input("labels", DType::kI32)
      .Input("dloss", DType::kF32)
      .Output("dlogits", DType::kF32)
      .Attribute("divisor", 1.0)
      .ShapeRule(SoftmaxCrossEntropyGradShapes)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dlogits", "logits")
      .Flops(PerInputElement(19))
      .CpuKernel<SoftmaxCrossEntropyGradCpu>("SoftmaxCrossEntropyGradCpu")
      .CudaKernel<SoftmaxCrossEntropyGradCuda>("SoftmaxCrossEntropyGradCuda")
      .Reference<SoftmaxCrossEntropyGradReference>();
}

}  // namespace thimble
