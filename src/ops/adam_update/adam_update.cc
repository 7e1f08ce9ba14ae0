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
#include "thimble/ops/adam_update/adam_update.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct AdamUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const bool has_factor = call.op.inputs.size() > kAdamFactor;
    const T factor = has_factor ? call.In(kAdamFactor)[0] : T(1);
    const AdamFactors factors(AdamSpecOf(call.op.attributes), RealPart(call.In(kAdamRate)[0]),
                              call.template InAs<int32_t>(kAdamUpdate)[0]);
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
    using std::sqrt;
    const T weight = call.In(0)[i];
    const T root = call.In(3)[i];
    const T next_m = T(factors.beta1) * call.In(2)[i] + T(factors.new_share1) * gradient;
    const T next_root =
        sqrt(T(factors.beta2) * root * root + T(factors.new_share2) * gradient * gradient);
    const T bound = T(factors.bound_slope) * next_root + T(factors.bound_offset);
    T step = next_m;
    if (RealPart(step) > RealPart(bound)) step = bound;
    if (RealPart(step) < -RealPart(bound)) step = -bound;
    step *= T(factors.rate) / (next_root * T(factors.root_scale) + T(factors.epsilon));
    call.Out(0)[i] = weight - (step + T(factors.decay) * weight);
    call.Out(1)[i] = next_m;
    call.Out(2)[i] = next_root;
  }
};

Result<void> CheckAdamSpec(const AdamSpec& spec) {
  for (const auto& [name, beta] : {std::pair{"beta1", spec.beta1}, {"beta2", spec.beta2}}) {
    if (beta >= 0 && beta < 1) continue;
    return BadInput(fmt::format("{} is {}, expected at least 0 and below 1", name, beta));
  }
  if (spec.epsilon > 0) return {};
  return BadInput(fmt::format("epsilon is {}, expected above 0", spec.epsilon));
}

// Arrays of one shape, then single numbers.
Result<std::vector<Shape>> AdamShapes(const OpCall& call) {
  constexpr std::string_view kNames[] = {"weight",         "gradient",      "first_moment",
                                         "second_root",    "learning_rate", "update",
                                         "gradient_factor"};
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const Shape expected = i < kAdamArrays ? call.inputs[0] : Shape{1};
    THIMBLE_TRY(RequireShape(kNames[i], call.inputs[i], expected));
  }
  THIMBLE_TRY(CheckAdamSpec(AdamSpecOf(call.attributes)));
  THIMBLE_TRY(CheckRounding(call.attributes, /*has_update=*/true));
  return std::vector<Shape>(3, call.inputs[0]);
}

}  // namespace

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
      .Attribute("beta1", 0.9)
      .Attribute("beta2", 0.999)
      .Attribute("epsilon", 1e-8)
      .Attribute("weight_decay", 0.0)
      .ShapeRule(AdamShapes)
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_weight", "weight")
      .OutputMayReuse("next_first_moment", "first_moment")
      .OutputMayReuse("next_second_root", "second_root")
      // Scaling 1, first moment 3, second moment 5 and its root, bound 3, step 4, weight 3.
      .Flops(PerOutputElement(20))
      .CpuKernel<AdamUpdateCpu>("AdamUpdateCpu")
      .CudaKernel<AdamUpdateCuda>("AdamUpdateCuda")
      .Reference<AdamUpdateReference>();
  return AddRoundingAttributes(op);
}

}  // namespace thimble
