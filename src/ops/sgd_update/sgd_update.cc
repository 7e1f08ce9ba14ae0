// sgd_update: stochastic gradient descent with momentum and weight decay:
//   d = gradient + weight_decay * weight;  next_momentum = momentum * m + d
//   next_weight = weight - learning_rate * (nesterov ? d + momentum * next_momentum :
//   next_momentum)
// sgd_update_plain is the same without momentum, and without its array.
#include "thimble/ops/sgd_update/sgd_update.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// PyTorch's convention: the learning rate scales the step, not the accumulated momentum.
struct SgdUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const Attributes& attributes = call.op.attributes;
    const T momentum = T(attributes.Float("momentum"));
    const T weight_decay = T(attributes.Float("weight_decay"));
    const bool nesterov = attributes.Int("nesterov") != 0;
    const T learning_rate = call.In(3)[0];
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T weight = call.In(0)[i];
      const T slope = call.In(1)[i] + weight_decay * weight;
      const T next_momentum = momentum * call.In(2)[i] + slope;
      const T step = nesterov ? slope + momentum * next_momentum : next_momentum;
      call.Out(0)[i] = weight - learning_rate * step;
      call.Out(1)[i] = next_momentum;
    }
  }
};

struct SgdUpdatePlainReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T weight_decay = T(call.op.attributes.Float("weight_decay"));
    const T learning_rate = call.In(2)[0];
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T weight = call.In(0)[i];
      call.Out(0)[i] = weight - learning_rate * (call.In(1)[i] + weight_decay * weight);
    }
  }
};

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
      .Input("learning_rate", DType::kF32)
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
      .CpuKernel<SgdUpdateCpu>("SgdUpdateCpu")
      .CudaKernel<SgdUpdateCuda>("SgdUpdateCuda")
      .Reference<SgdUpdateReference>();
}

OpDef Make_sgd_update_plain() {
  return OpDef("sgd_update_plain")
      .Input("weight")
      .Input("gradient")
      .Input("learning_rate", DType::kF32)
      .Output("next_weight")
      .Attribute("weight_decay", 0.0)
      .ShapeRule(SgdShapes(2, 1))
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_weight", "weight")
      .Flops(PerOutputElement(4))
      .CpuKernel<SgdUpdatePlainCpu>("SgdUpdatePlainCpu")
      .CudaKernel<SgdUpdatePlainCuda>("SgdUpdatePlainCuda")
      .Reference<SgdUpdatePlainReference>();
}

}  // namespace thimble
