// Stochastic gradient descent with momentum and weight decay. With the whole gradient:
//   sgd_update: d = factor * gradient + weight_decay * weight;  next_momentum = momentum * m + d
//     next_weight = weight - learning_rate * (nesterov ? d + momentum * next_momentum :
//     next_momentum)
//   sgd_update_plain: the same without momentum, and without its array.
// Without Nesterov the parts of a batch can add their gradients to the momentum one by one, without
// an array for the sum of gradients:
//   sgd_gather: next_momentum = the same for the first part; m + factor * gradient for the others
//   sgd_apply: next_weight = weight - learning_rate * m
//   sgd_apply_feedback: the same, for error feedback
//
// The optional input gradient_factor undoes the scale of the loss and clips; 0 skips the update
// (for sgd_gather: the gradient). Results that are stored in fewer than 32 bits are rounded at
// random if `stochastic` is 1: then the input `update` is required. If `feedback_rate` is above 0,
// what rounding takes from a weight is returned through its momentum (FeedbackGain): errors then
// stay below a few units of the weight instead of adding up over all updates. Learning rates below
// feedback_rate count as that rate, so that a rate that rises later returns no more than a
// multiple.
#include "thimble/ops/sgd_update/sgd_update.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// The factor of the gradient; 1 if the node has none.
template <class T>
T FactorOf(const ReferenceCall<T>& call, size_t input) {
  return call.op.inputs.size() > input ? call.In(input)[0] : T(1);
}

// PyTorch's convention: the learning rate scales the step, not the accumulated momentum.
struct SgdUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const Attributes& attributes = call.op.attributes;
    const T momentum = T(attributes.Float("momentum"));
    const T weight_decay = T(attributes.Float("weight_decay"));
    const bool nesterov = attributes.Int("nesterov") != 0;
    const T learning_rate = call.In(3)[0];
    const T factor = FactorOf(call, kSgdUpdateInputs.factor);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T weight = call.In(0)[i];
      const T slope = factor * call.In(1)[i] + weight_decay * weight;
      const T next_momentum = momentum * call.In(2)[i] + slope;
      const T step = nesterov ? slope + momentum * next_momentum : next_momentum;
      call.Out(0)[i] = factor == T(0) ? weight : weight - learning_rate * step;
      call.Out(1)[i] = factor == T(0) ? call.In(2)[i] : next_momentum;
    }
  }
};

struct SgdUpdatePlainReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T weight_decay = T(call.op.attributes.Float("weight_decay"));
    const T learning_rate = call.In(2)[0];
    const T factor = FactorOf(call, kSgdPlainInputs.factor);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T weight = call.In(0)[i];
      const T slope = factor * call.In(1)[i] + weight_decay * weight;
      call.Out(0)[i] = factor == T(0) ? weight : weight - learning_rate * slope;
    }
  }
};

struct SgdGatherReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T momentum = T(call.op.attributes.Float("momentum"));
    const T weight_decay = T(call.op.attributes.Float("weight_decay"));
    const bool first = call.template InAs<int32_t>(3)[0] == 0;
    const T factor = FactorOf(call, kSgdGatherInputs.factor);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T gradient = factor == T(0) ? T(0) : factor * call.In(1)[i];
      const T before = call.In(2)[i];
      call.Out(0)[i] =
          first ? momentum * before + (gradient + weight_decay * call.In(0)[i]) : before + gradient;
    }
  }
};

struct SgdApplyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T learning_rate = call.In(2)[0];
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = call.In(0)[i] - learning_rate * call.In(1)[i];
    }
  }
};

struct SgdApplyFeedbackReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    SgdApplyReference::Run(call);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) call.Out(1)[i] = call.In(1)[i];
  }
};

// Arrays of one shape, then single numbers; `num_outputs` outputs like the arrays. `names` are
// those of the inputs.
ShapeFunction SgdShapes(const SgdInputs& where, size_t num_outputs,
                        const std::vector<std::string_view>& names) {
  return [=](const OpCall& call) -> Result<std::vector<Shape>> {
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      const Shape expected = i < where.arrays ? call.inputs[0] : Shape{1};
      THIMBLE_TRY(RequireShape(names[i], call.inputs[i], expected));
    }
    THIMBLE_TRY(CheckRounding(call.attributes, call.inputs.size() > where.update));
    return std::vector<Shape>(num_outputs, call.inputs[0]);
  };
}

// What all these ops have in common.
OpDef& AddRounding(OpDef& op) {
  return AddRoundingAttributes(op).NoGradient("updates are not differentiated");
}

}  // namespace

OpDef Make_sgd_update() {
  OpDef op("sgd_update");
  op.Input("weight")
      .Input("gradient")
      .StateInput("momentum")
      .Input("learning_rate", DType::kF32)
      .OptionalInput("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .Output("next_weight")
      .StateOutput("next_momentum")
      .Attribute("momentum", 0.9)
      .Attribute("weight_decay", 0.0)
      .Attribute("nesterov", int64_t{0})
      .Attribute("feedback_rate", 0.0)
      .ShapeRule(SgdShapes(
          kSgdUpdateInputs, 2,
          {"weight", "gradient", "momentum", "learning_rate", "update", "gradient_factor"}))
      .OutputMayReuse("next_weight", "weight")
      .OutputMayReuse("next_momentum", "momentum")
      .Flops([](const OpCall& call) {
        const int64_t per_element = call.attributes.Int("nesterov") != 0 ? 8 : 6;
        return per_element * call.outputs[0].elements();
      })
      .CpuKernel<SgdUpdateCpu>("SgdUpdateCpu")
      .CudaKernel<SgdUpdateCuda>("SgdUpdateCuda")
      .Reference<SgdUpdateReference>();
  return AddRounding(op);
}

OpDef Make_sgd_update_plain() {
  OpDef op("sgd_update_plain");
  op.Input("weight")
      .Input("gradient")
      .Input("learning_rate", DType::kF32)
      .OptionalInput("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .Output("next_weight")
      .Attribute("weight_decay", 0.0)
      .ShapeRule(SgdShapes(kSgdPlainInputs, 1,
                           {"weight", "gradient", "learning_rate", "update", "gradient_factor"}))
      .OutputMayReuse("next_weight", "weight")
      .Flops(PerOutputElement(4))
      .CpuKernel<SgdUpdatePlainCpu>("SgdUpdatePlainCpu")
      .CudaKernel<SgdUpdatePlainCuda>("SgdUpdatePlainCuda")
      .Reference<SgdUpdatePlainReference>();
  return AddRounding(op);
}

OpDef Make_sgd_gather() {
  OpDef op("sgd_gather");
  op.Input("weight")
      .Input("gradient")
      .StateInput("momentum")
      .Input("seen", DType::kI32)  // samples in earlier parts
      .OptionalInput("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .StateOutput("next_momentum")
      .Attribute("momentum", 0.9)
      .Attribute("weight_decay", 0.0)
      .ShapeRule(SgdShapes(kSgdGatherInputs, 1,
                           {"weight", "gradient", "momentum", "seen", "update", "gradient_factor"}))
      .OutputMayReuse("next_momentum", "momentum")
      .Flops(PerOutputElement(4))
      .CpuKernel<SgdGatherCpu>("SgdGatherCpu")
      .CudaKernel<SgdGatherCuda>("SgdGatherCuda")
      .Reference<SgdGatherReference>();
  return AddRounding(op);
}

OpDef Make_sgd_apply() {
  OpDef op("sgd_apply");
  op.Input("weight")
      .StateInput("momentum")
      .Input("learning_rate", DType::kF32)
      .OptionalInput("update", DType::kI32)
      .Output("next_weight")
      .ShapeRule(SgdShapes(kSgdApplyInputs, 1, {"weight", "momentum", "learning_rate", "update"}))
      .OutputMayReuse("next_weight", "weight")
      .Flops(PerOutputElement(2))
      .CpuKernel<SgdApplyCpu>("SgdApplyCpu")
      .CudaKernel<SgdApplyCuda>("SgdApplyCuda")
      .Reference<SgdApplyReference>();
  return AddRounding(op);
}

OpDef Make_sgd_apply_feedback() {
  OpDef op("sgd_apply_feedback");
  op.Input("weight")
      .StateInput("momentum")
      .Input("learning_rate", DType::kF32)
      .OptionalInput("update", DType::kI32)
      .Output("next_weight")
      .StateOutput("next_momentum")
      .Attribute("momentum", 0.9)
      .Attribute("feedback_rate", 0.0)
      .ShapeRule(SgdShapes(kSgdApplyInputs, 2, {"weight", "momentum", "learning_rate", "update"}))
      .OutputMayReuse("next_weight", "weight")
      .OutputMayReuse("next_momentum", "momentum")
      .Flops(PerOutputElement(4))
      .CpuKernel<SgdApplyFeedbackCpu>("SgdApplyFeedbackCpu")
      .CudaKernel<SgdApplyFeedbackCuda>("SgdApplyFeedbackCuda")
      .Reference<SgdApplyFeedbackReference>();
  return AddRounding(op);
}

}  // namespace thimble
