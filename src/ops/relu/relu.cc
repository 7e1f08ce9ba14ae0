// relu: y = max(x, 0). Its gradient uses the output, so that y may overwrite x.
#include "thimble/ops/relu/relu.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct ReluReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T x = call.In(0)[i];
      // Not (x < 0), so that NaN passes through.
      call.Out(0)[i] = RealPart(x) <= 0 ? T(0) : x;
    }
  }
};

struct ReluGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = RealPart(call.In(0)[i]) <= 0 ? T(0) : call.In(1)[i];
    }
  }
};

}  // namespace

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
      .CpuKernel<ReluCpu>("ReluCpu")
      .CudaKernel<ReluCuda>("ReluCuda")
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
      .CpuKernel<ReluGradCpu>("ReluGradCpu")
      .CudaKernel<ReluGradCuda>("ReluGradCuda")
      .Reference<ReluGradReference>();
}

}  // namespace thimble
