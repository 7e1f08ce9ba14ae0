// AdamW, as in PyTorch. With g = gradient_factor * gradient and t = update + 1:
//   next_m = beta1 * m + (1 - beta1) * g;  next_v = beta2 * v + (1 - beta2) * g^2
//   next_weight = weight - learning_rate * (m' / (sqrt(v') + epsilon) + weight_decay * weight),
//     where m' = next_m / (1 - beta1^t) and v' = next_v / (1 - beta2^t)
//
// `update` is the number of the update, from 0, as in sgd_update. A gradient_factor of 0 skips the
// update: nothing changes, but the number goes on, also for updates whose loss overflowed. (PyTorch
// would not count them.) Moments of 0 then count as measured: for beta 0.9 and 0.999 the first step
// after skipped updates is from half to three times as large as without them, and the difference is
// forgotten with the moments.
//
// What is stored of v is its root: it needs no wider range than the gradients, so that 16 and 8
// bits can hold it, and costs nothing, because the update needs the root anyway.
//
// By the Cauchy-Schwarz inequality |next_m| <= sqrt(next_v) * (1 - beta1) / sqrt((1 - beta2) *
// (1 - beta1^2 / beta2)), if beta1^2 < beta2. Rounding can break this: in few bits a root may
// become 0 beside a first moment that does not, and the weight would take a step of
// learning_rate / epsilon. So m is cut off at this bound in the step; without rounding this changes
// nothing.
//
// Parts of a batch can do this one after the other, without an array for the sum of their gradients
// g_1, g_2, ...: adam_gather for each part, then adam_apply.
//   first part:  m = beta1 * m + (1 - beta1) * g_1;  v = beta2 * v + (1 - beta2) * g_1^2
//   other parts: m = m + (1 - beta1) * g_i;          v = v + (1 - beta2) * g_i^2
// The sum of squares stands for the square of the sum: with one part it is the same update, with n
// parts v is from 1 / n of that of adam_update, if all gradients are equal, to any multiple of it.
// The bound then also limits the steps of gradients that agree to those that Adam could take.
#include "thimble/ops/adam_update/adam_update.h"

#include "thimble/ops/adam_update/adam_ops.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

template <class T>
T FactorOf(const ReferenceCall<T>& call, const AdamInputs& inputs) {
  return call.op.inputs.size() > inputs.factor ? call.In(inputs.factor)[0] : T(1);
}

// `kept` is the share of the old second moment that remains.
template <class T>
T NextRoot(T kept, T root, const AdamFactors& factors, T gradient) {
  using std::sqrt;
  return sqrt(kept * root * root + T(factors.new_share2) * gradient * gradient);
}

template <class T>
T NextWeight(const AdamFactors& factors, T weight, T moment, T root) {
  const T bound = T(factors.bound_slope) * root + T(factors.bound_offset);
  T step = moment;
  if (RealPart(step) > RealPart(bound)) step = bound;
  if (RealPart(step) < -RealPart(bound)) step = -bound;
  step *= T(factors.rate) / (root * T(factors.root_scale) + T(factors.epsilon));
  return weight - (step + T(factors.decay) * weight);
}

struct AdamUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    constexpr AdamInputs kInputs = kAdamUpdateInputs;
    const T factor = FactorOf(call, kInputs);
    const AdamFactors factors(AdamSpecOf(call.op.attributes, kInputs),
                              RealPart(call.In(kInputs.rate)[0]),
                              call.template InAs<int32_t>(kInputs.update)[0]);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      if (factor == T(0)) {
        call.Out(0)[i] = call.In(0)[i];
        call.Out(1)[i] = call.In(2)[i];
        call.Out(2)[i] = call.In(3)[i];
      } else {
        RunElement(call, factors, i, factor * call.In(1)[i]);
      }
    }
  }

 private:
  template <class T>
  static void RunElement(const ReferenceCall<T>& call, const AdamFactors& factors, int64_t i,
                         T gradient) {
    const T weight = call.In(0)[i];
    const T next_m = T(factors.beta1) * call.In(2)[i] + T(factors.new_share1) * gradient;
    const T next_root = NextRoot(T(factors.beta2), call.In(3)[i], factors, gradient);
    call.Out(0)[i] = NextWeight(factors, weight, next_m, next_root);
    call.Out(1)[i] = next_m;
    call.Out(2)[i] = next_root;
  }
};

struct AdamGatherReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    constexpr AdamInputs kInputs = kAdamGatherInputs;
    const T factor = FactorOf(call, kInputs);
    const AdamFactors factors(AdamSpecOf(call.op.attributes, kInputs), 0,
                              call.template InAs<int32_t>(kInputs.update)[0]);
    const bool first = call.template InAs<int32_t>(kInputs.seen)[0] == 0;
    const T kept1 = first ? T(factors.beta1) : T(1);
    const T kept2 = first ? T(factors.beta2) : T(1);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      const T gradient = factor == T(0) ? T(0) : factor * call.In(0)[i];
      const bool stays = factor == T(0) && !first;
      call.Out(0)[i] = kept1 * call.In(1)[i] + T(factors.new_share1) * gradient;
      call.Out(1)[i] = stays ? call.In(2)[i] : NextRoot(kept2, call.In(2)[i], factors, gradient);
    }
  }
};

struct AdamApplyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    constexpr AdamInputs kInputs = kAdamApplyInputs;
    const AdamFactors factors(AdamSpecOf(call.op.attributes, kInputs),
                              RealPart(call.In(kInputs.rate)[0]),
                              call.template InAs<int32_t>(kInputs.update)[0]);
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = NextWeight(factors, call.In(0)[i], call.In(1)[i], call.In(2)[i]);
    }
  }
};

// Arrays of one shape, then single numbers; `num_outputs` outputs like the arrays. `names` are
// those of the inputs.
ShapeFunction AdamShapes(const AdamInputs& where, size_t num_outputs,
                         const std::vector<std::string_view>& names) {
  return [=](const OpCall& call) -> Result<std::vector<Shape>> {
    for (size_t i = 1; i < call.inputs.size(); ++i) {
      const Shape expected = i < where.arrays ? call.inputs[0] : Shape{1};
      THIMBLE_TRY(RequireShape(names[i], call.inputs[i], expected));
    }
    THIMBLE_TRY(CheckAdamSpec(AdamSpecOf(call.attributes, where)));
    THIMBLE_TRY(CheckRounding(call.attributes, /*has_update=*/true));
    return std::vector<Shape>(num_outputs, call.inputs[0]);
  };
}

}  // namespace

Result<void> CheckAdamSpec(const AdamSpec& spec) {
  for (const auto& [name, beta] : {std::pair{"beta1", spec.beta1}, {"beta2", spec.beta2}}) {
    if (beta >= 0 && beta < 1) continue;
    return BadInput(fmt::format("{} is {}, expected at least 0 and below 1", name, beta));
  }
  if (spec.epsilon > 0) return {};
  return BadInput(fmt::format("epsilon is {}, expected above 0", spec.epsilon));
}

OpDef& AddAdamAttributes(OpDef& op) {
  op.Attribute("beta1", 0.9).Attribute("beta2", 0.999);
  return AddRoundingAttributes(op).NoGradient("updates are not differentiated");
}

OpDef Make_adam_update() {
  OpDef op("adam_update");
  op.Input("weight")
      .Input("gradient")
      .StateInput("first_moment")
      .StateInput("second_root")
      .Input("learning_rate", DType::kF32)
      .Input("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .Output("next_weight")
      .StateOutput("next_first_moment")
      .StateOutput("next_second_root")
      .Attribute("epsilon", 1e-8)
      .Attribute("weight_decay", 0.0)
      .ShapeRule(AdamShapes(kAdamUpdateInputs, 3,
                            {"weight", "gradient", "first_moment", "second_root", "learning_rate",
                             "update", "gradient_factor"}))
      .OutputMayReuse("next_weight", "weight")
      .OutputMayReuse("next_first_moment", "first_moment")
      .OutputMayReuse("next_second_root", "second_root")
      // Scaling 1, first moment 3, second moment 5 and its root, bound 3, step 4, weight 3.
      .Flops(PerOutputElement(20))
      .CpuKernel<AdamUpdateCpu>("AdamUpdateCpu")
      .CudaKernel<AdamUpdateCuda>("AdamUpdateCuda")
      .Reference<AdamUpdateReference>();
  return AddAdamAttributes(op);
}

OpDef Make_adam_gather() {
  OpDef op("adam_gather");
  op.Input("gradient")
      .StateInput("first_moment")
      .StateInput("second_root")
      .Input("seen", DType::kI32)  // samples in earlier parts
      .Input("update", DType::kI32)
      .OptionalInput("gradient_factor", DType::kF32)
      .StateOutput("next_first_moment")
      .StateOutput("next_second_root")
      .ShapeRule(AdamShapes(
          kAdamGatherInputs, 2,
          {"gradient", "first_moment", "second_root", "seen", "update", "gradient_factor"}))
      .OutputMayReuse("next_first_moment", "first_moment")
      .OutputMayReuse("next_second_root", "second_root")
      // Scaling 1, first moment 3, second moment 5 and its root.
      .Flops(PerOutputElement(10))
      .CpuKernel<AdamGatherCpu>("AdamGatherCpu")
      .CudaKernel<AdamGatherCuda>("AdamGatherCuda")
      .Reference<AdamGatherReference>();
  return AddAdamAttributes(op);
}

OpDef Make_adam_apply() {
  OpDef op("adam_apply");
  op.Input("weight")
      .StateInput("first_moment")
      .StateInput("second_root")
      .Input("learning_rate", DType::kF32)
      .Input("update", DType::kI32)
      .Output("next_weight")
      .Attribute("epsilon", 1e-8)
      .Attribute("weight_decay", 0.0)
      .ShapeRule(AdamShapes(kAdamApplyInputs, 1,
                            {"weight", "first_moment", "second_root", "learning_rate", "update"}))
      .OutputMayReuse("next_weight", "weight")
      // Bound 3, step 4, weight 3.
      .Flops(PerOutputElement(10))
      .CpuKernel<AdamApplyCpu>("AdamApplyCpu")
      .CudaKernel<AdamApplyCuda>("AdamApplyCuda")
      .Reference<AdamApplyReference>();
  return AddAdamAttributes(op);
}

}  // namespace thimble
