// add: y = a + b, element by element. The gradient of y is the gradient of both, so no node is
// needed.
#include "thimble/graph/op_def.h"
#include "thimble/ops/add/add_cpu.h"
#include "thimble/ops/add/add_cuda.h"
#include "thimble/ops/add/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {

OpDef Make_add() {
  return OpDef("add")
      .Input("a")
      .Input("b")
      .Output("y")
      .ShapeRule(AllSameShape({"a", "b"}))
      .Gradient([](GradientBuilder& g) {
        g.AddTo("a", g.GradOf("y"));
        g.AddTo("b", g.GradOf("y"));
      })
      .OutputMayReuse("y", "a")
      .OutputMayReuse("y", "b")
      .Flops(PerOutputElement(1))
      .Kernels({
#include "thimble/ops/add/kernels.inc"
      })
      .Reference<AddReference>();
}

}  // namespace thimble
