// accumulate: the sum of gradients over the parts of a batch: next = seen == 0 ? x : sum + x. The
// content of `sum` before the first part is ignored, so it need not be cleared.
#include "thimble/ops/accumulate/accumulate.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct AccumulateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const bool first = call.template InAs<int32_t>(2)[0] == 0;
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = first ? call.In(1)[i] : call.In(0)[i] + call.In(1)[i];
    }
  }
};

Result<std::vector<Shape>> AccumulateShapes(const OpCall& call) {
  THIMBLE_TRY(RequireShape("x", call.inputs[1], call.inputs[0]));
  THIMBLE_TRY(RequireShape("seen", call.inputs[2], Shape{1}));
  return std::vector<Shape>{call.inputs[0]};
}

}  // namespace

OpDef Make_accumulate() {
  return OpDef("accumulate")
      .Input("sum")
      .Input("x")
      .Input("seen", DType::kI32)
      .Output("next")
      .ShapeRule(AccumulateShapes)
      .NoGradient("sums over parts of a batch are not differentiated")
      .OutputMayReuse("next", "sum")
      .Flops(PerOutputElement(1))
      .CpuKernel<AccumulateCpu>("AccumulateCpu")
      .CudaKernel<AccumulateCuda>("AccumulateCuda")
      .Reference<AccumulateReference>();
}

}  // namespace thimble
