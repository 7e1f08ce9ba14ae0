// dropout: each element becomes zero with probability `rate`; the others are divided by 1 - rate,
// so that the expected value stays. dropout_draw.h has the draw. Backward draws again, so nothing
// is kept for it.
#include "thimble/graph/op_def.h"
#include "thimble/ops/dropout/dropout_cpu.h"
#include "thimble/ops/dropout/dropout_cuda.h"
#include "thimble/ops/dropout/dropout_draw.h"
#include "thimble/ops/dropout/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

Result<void> CheckAttributes(const Attributes& attributes) {
  const double rate = attributes.Float("rate");
  if (!(rate >= 0 && rate < 1)) {
    return BadInput(fmt::format("rate is {}, expected at least 0 and below 1", rate));
  }
  const int64_t stream = attributes.Int("stream");
  if (stream < 0 || stream > UINT32_MAX) {
    return BadInput(fmt::format("stream is {}, expected 0 to {}", stream, UINT32_MAX));
  }
  return {};
}

Result<std::vector<Shape>> DropoutShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  if (x.rank() < 1) return BadInput("'x' has shape (), expected at least 1 dimension (B, ...)");
  THIMBLE_TRY(RequireShape("samples", call.inputs[1], Shape{x[0]}));
  THIMBLE_TRY(RequireShape("epoch", call.inputs[2], Shape{1}));
  THIMBLE_TRY(CheckAttributes(call.attributes));
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
      .Kernels({
#include "thimble/ops/dropout/kernels.inc"
      })
      .Reference<DropoutReference>();
}

}  // namespace thimble
