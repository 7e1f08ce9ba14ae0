// add: y = a + b, element by element. The gradient of y is the gradient of both, so no node is
// needed.
#include "thimble/ops/add/add.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct AddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = call.In(0)[i] + call.In(1)[i];
    }
  }
};

}  // namespace

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
      .CpuKernel<AddCpu>("AddCpu")
      .CudaKernel<AddCuda>("AddCuda")
      .Reference<AddReference>();
}

}  // namespace thimble
