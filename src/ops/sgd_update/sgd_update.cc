// sgd_update: stochastic gradient descent with momentum and weight decay:
//   d = gradient + weight_decay * weight;  next_momentum = momentum * m + d
//   next_weight = weight - learning_rate * (nesterov ? d + momentum * next_momentum :
//   next_momentum)
// sgd_update_plain is the same without momentum, and without its array.
#include "thimble/graph/op_def.h"
#include "thimble/ops/sgd_update/reference.h"
#include "thimble/ops/sgd_update/sgd_update_cpu.h"
#include "thimble/ops/sgd_update/sgd_update_cuda.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// `num_arrays` inputs of one shape, then the learning rate; `num_outputs` outputs like the arrays.
ShapeFunction SgdShapes(size_t num_arrays, size_t num_outputs) {
  return [=](const OpCall& call) -> Result<std::vector<Shape>> {
    constexpr std::string_view kNames[] = {"weight", "gradient", "momentum"};
    for (size_t i = 1; i < num_arrays; ++i) {
      THIMBLE_TRY(RequireShape(kNames[i], call.inputs[i], call.inputs[0]));
    }
    THIMBLE_TRY(RequireShape("learning_rate", call.inputs[num_arrays], Shape{1}));
    return std::vector<Shape>(num_outputs, call.inputs[0]);
  };
}

}  // namespace

OpDef Make_sgd_update() {
  return OpDef("sgd_update")
      .Input("weight")
      .Input("gradient")
      .Input("momentum")
      .Input("learning_rate")
      .Output("next_weight")
      .Output("next_momentum")
      .Attribute("momentum", 0.9)
      .Attribute("weight_decay", 0.0)
      .Attribute("nesterov", int64_t{0})
      .ShapeRule(SgdShapes(3, 2))
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_weight", "weight")
      .OutputMayReuse("next_momentum", "momentum")
      .Flops([](const OpCall& call) {
        const int64_t per_element = call.attributes.Int("nesterov") != 0 ? 8 : 6;
        return per_element * call.outputs[0].elements();
      })
      .Kernels({
#include "thimble/ops/sgd_update/kernels.inc"
      })
      .Reference<SgdUpdateReference>();
}

OpDef Make_sgd_update_plain() {
  return OpDef("sgd_update_plain")
      .Input("weight")
      .Input("gradient")
      .Input("learning_rate")
      .Output("next_weight")
      .Attribute("weight_decay", 0.0)
      .ShapeRule(SgdShapes(2, 1))
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_weight", "weight")
      .Flops(PerOutputElement(4))
      .Kernels({
#include "thimble/ops/sgd_update/plain_kernels.inc"
      })
      .Reference<SgdUpdatePlainReference>();
}

}  // namespace thimble
