// relu: y = max(x, 0). Its gradient looks at the output, so that y may overwrite x.
#include "thimble/graph/op_def.h"
#include "thimble/ops/relu/reference.h"
#include "thimble/ops/relu/relu_cpu.h"
#include "thimble/ops/relu/relu_cuda.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {

OpDef Make_relu() {
  return OpDef("relu")
      .Input("x")
      .Output("y")
      .ShapeRule(SameAs(0))
      .Gradient([](GradientBuilder& g) {
        g.AddTo("x", g.Emit("relu_grad", {g.Out("y"), g.GradOf("y")})[0]);
      })
      .OutputMayReuse("y", "x")
      .CheapToRebuild()
      .Flops(PerOutputElement(1))
      .Kernels({
#include "thimble/ops/relu/kernels.inc"
      })
      .Reference<ReluReference>();
}

OpDef Make_relu_grad() {
  return OpDef("relu_grad")
      .Input("y")
      .Input("dy")
      .Output("dx")
      .ShapeRule(AllSameShape({"y", "dy"}))
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dx", "dy")
      .OutputMayReuse("dx", "y")
      .Flops(PerOutputElement(1))
      .Kernels({
#include "thimble/ops/relu/grad_kernels.inc"
      })
      .Reference<ReluGradReference>();
}

}  // namespace thimble
