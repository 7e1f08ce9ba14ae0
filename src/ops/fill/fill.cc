// fill: one constant number; the seed that backward starts from.
#include "thimble/ops/fill/fill.h"

#include "thimble/graph/op_def.h"

namespace thimble {
namespace {

struct FillReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = T(call.op.attributes.Float("value"));
    }
  }
};

}  // namespace

// One number needs no vectors or threads: the reference is the only CPU kernel.
OpDef Make_fill() {
  return OpDef("fill")
      .Output("y", DType::kF32)
      .Attribute("value", 0.0)
      .ShapeRule(
          [](const OpCall&) -> Result<std::vector<Shape>> { return std::vector<Shape>{Shape{1}}; })
      .NoGradient("a constant depends on nothing")
      .Flops([](const OpCall&) -> int64_t { return 0; })
      .CudaKernel<FillCuda>("FillCuda")
      .Reference<FillReference>();
}

}  // namespace thimble
