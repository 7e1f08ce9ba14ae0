// fill: one constant number; the seed that backward starts from.
#include "thimble/graph/op_def.h"
#include "thimble/ops/fill/fill_cuda.h"
#include "thimble/ops/fill/reference.h"

namespace thimble {

// One number is no work for vectors or threads: the reference is the CPU's only kernel.
OpDef Make_fill() {
  return OpDef("fill")
      .Output("y")
      .Attribute("value", 0.0)
      .ShapeRule(
          [](const OpCall&) -> Result<std::vector<Shape>> { return std::vector<Shape>{Shape{1}}; })
      .NoGradient("a constant depends on nothing")
      .Flops([](const OpCall&) -> int64_t { return 0; })
      .Kernels({
#include "thimble/ops/fill/kernels.inc"
      })
      .Reference<FillReference>();
}

}  // namespace thimble
