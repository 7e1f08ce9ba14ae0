// dropout: each element becomes zero with probability `rate`; the others are divided by 1 - rate,
// so that the expected value stays the same. dropout_draw.h has the random draw. The backward pass
// draws again, so nothing is stored for it.
#include "thimble/ops/dropout/dropout.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/dropout/dropout_rules.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct DropoutReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t elements = call.in_shape(0).elements();
    if (elements == 0) return;
    const Attributes& attributes = call.op.attributes;
    const double rate = attributes.Float("rate");
    const DropoutDraw draw(static_cast<uint64_t>(attributes.Int("seed")),
                           static_cast<uint32_t>(attributes.Int("stream")), rate);
    const int64_t per_sample = elements / call.in_shape(0)[0];
    const auto epoch = static_cast<uint32_t>(call.template InAs<int32_t>(2)[0]);
    for (int64_t i = 0; i < elements; ++i) {
      const auto sample = static_cast<uint32_t>(call.template InAs<int32_t>(1)[i / per_sample]);
      const int64_t element = i % per_sample;
      const auto words =
          draw.Words(epoch, sample, static_cast<uint32_t>(element / kElementsPerDraw));
      const bool kept = draw.Keeps(words[static_cast<size_t>(element % kElementsPerDraw)]);
      call.Out(0)[i] = kept ? call.In(0)[i] * T(1.0 / (1.0 - rate)) : T(0);
    }
  }
};

Result<std::vector<Shape>> DropoutShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  if (x.rank() < 1) return BadInput("'x' has shape (), expected at least 1 dimension (B, ...)");
  THIMBLE_TRY(RequireShape("samples", call.inputs[1], Shape{x[0]}));
  THIMBLE_TRY(RequireShape("epoch", call.inputs[2], Shape{1}));
  THIMBLE_TRY(CheckDropoutAttributes(call.attributes));
  if (x[0] > 0 && x.elements() / x[0] > kMaxDropoutElements) {
    return BadInput(
        fmt::format("a sample of {} has more than {} elements", ToString(x), kMaxDropoutElements));
  }
  return std::vector<Shape>{x};
}

}  // namespace

OpDef Make_dropout() {
  return OpDef("dropout")
      .Input("x")
      .Input("samples", DType::kI32)  // index of each sample in the data set
      .Input("epoch", DType::kI32)
      .Output("y")
      .Attribute("rate", 0.5)
      .Attribute("seed", int64_t{0})
      .Attribute("stream", int64_t{0})
      .ShapeRule(DropoutShapes)
      .Gradient([](GradientBuilder& g) {
        g.AddTo("x", g.Emit("dropout", {g.GradOf("y"), g.In("samples"), g.In("epoch")},
                            g.attributes())[0]);
      })
      .OutputMayReuse("y", "x")
      .CheapToRebuild()
      .Flops(PerOutputElement(1))
      .CpuKernel<DropoutCpu>("DropoutCpu")
      .CudaKernel<DropoutCuda>("DropoutCuda")
      .Reference<DropoutReference>();
}

}  // namespace thimble
