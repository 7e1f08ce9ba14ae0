// clear: y of the shape of x, all zero, whatever x holds: the next version of a cache, with which
// something new begins. x is never read.
#include "thimble/ops/clear/clear.h"

#include <algorithm>

#include "thimble/graph/op_def.h"

namespace thimble {
namespace {

struct ClearReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    std::fill_n(call.Out(0), call.out_shape(0).elements(), T(0));
  }
};

}  // namespace

OpDef Make_clear() {
  return OpDef("clear")
      .Input("x")
      .Output("y")
      .ShapeRule(SameAs(0))
      .NoGradient("the output does not depend on the input")
      .OutputMayReuse("y", "x")
      .CpuKernel<ClearCpu>("ClearCpu")
      .CudaKernel<ClearCuda>("ClearCuda")
      .Reference<ClearReference>();
}

}  // namespace thimble
