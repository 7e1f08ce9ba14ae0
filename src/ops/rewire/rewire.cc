// rewire: some active weights of packed tensors (tensor/packed.h) are dropped, and as many inactive
// positions become active; numbers in the pools move accordingly. rewire_plain: without momentum.
//
// Dynamic sparse reparameterization, `method` 0 (Mostafa and Wang, 2019):
//   1. Each tensor drops its active weights with |w| < threshold, but keeps the largest one.
//   2. The number dropped is shared out in proportion to the weights that each tensor kept,
//   rounded;
//      a random tensor gets what rounding leaves.
//   3. Each tensor grows its share at random positions that were inactive before: not those just
//      dropped. Their weights and momentum are 0.
//   4. What a tensor has no room for is shared out again. If there is no room at all, the largest
//   of
//      the weights to be dropped, over all tensors, are kept instead, as many as find no room.
//   5. More than 1.1 * quota weights below the threshold (counted before 4): half of it from now
//   on;
//      fewer than 0.9 * quota: twice.
// Sparse evolutionary training, `method` 1 (Mocanu et al., 2018): each tensor drops `fraction` of
// its weights, the smallest, and grows as many. The threshold stays.
//
// Weights of equal magnitude: the lower position is kept. NaN counts as infinite. Weights that stay
// keep their bits; so does their momentum, unless it is stored in 8 bits: its blocks get other
// members, so its numbers are encoded again, rounded to the nearest.
#include "thimble/ops/rewire/rewire.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/rewire/reference.h"
#include "thimble/ops/rewire/rewire_rule.h"
#include "thimble/ops/shape_rules.h"
#include "thimble/tensor/pattern.h"

namespace thimble {
namespace {

constexpr int64_t kMostPositions = INT32_MAX;  // starts are i32

Result<void> CheckTensors(const std::vector<int64_t>& tensors) {
  int64_t positions = 0;
  for (const int64_t elements : tensors) {
    if (elements < 1 || elements > kMostPositions) {
      return BadInput(
          fmt::format("a tensor has {} elements, expected 1 to {}", elements, kMostPositions));
    }
    positions += PatternBlocks(elements) * kPatternBlock;
    if (positions > kMostPositions) {
      return BadInput(fmt::format("tensors have more than {} positions", kMostPositions));
    }
  }
  if (tensors.empty()) return BadInput("there are no tensors, expected at least one");
  return {};
}

Result<void> CheckMethod(const Attributes& attributes) {
  const int64_t method = attributes.Int("method");
  if (method != kRewireDsr && method != kRewireSet) {
    return BadInput(fmt::format("method is {}, expected 0 (dsr) or 1 (set)", method));
  }
  const double fraction = attributes.Float("fraction");
  if (!(fraction >= 0 && fraction <= 1)) {
    return BadInput(fmt::format("fraction is {}, expected 0 to 1", fraction));
  }
  const int64_t quota = attributes.Int("quota");
  if (quota < 0 || quota > kMostPositions) {
    return BadInput(fmt::format("quota is {}, expected 0 to {}", quota, kMostPositions));
  }
  return {};
}

Result<void> CheckWeights(const Shape& weights, const std::vector<int64_t>& tensors) {
  THIMBLE_TRY(RequireRank("weights", weights, 1, "A"));
  int64_t elements = 0;
  for (const int64_t count : tensors) elements += count;
  const auto least = static_cast<int64_t>(tensors.size());
  if (weights[0] >= least && weights[0] <= elements) return {};
  return BadInput(fmt::format("{} active weights, expected {} to {} in {} tensors", weights[0],
                              least, elements, least));
}

// Shape rules do not see how numbers are stored: in 8 bits a pool is longer.
Result<void> CheckMomentum(const Shape& momentum, int64_t active, int64_t tensors) {
  const Shape in_8_bits{PoolNumbers(DType::kQ8, active, tensors)};
  if (momentum == in_8_bits) return {};
  if (momentum == Shape{active}) return {};
  return BadInput(fmt::format("'momentum' has shape {}, expected {} or, in 8 bits, {}",
                              ToString(momentum), ToString(Shape{active}), ToString(in_8_bits)));
}

Result<std::vector<Shape>> RewireShapes(const OpCall& call) {
  const RewirePorts ports = RewirePortsOf(call.inputs.size());
  const std::vector<int64_t>& tensors = call.attributes.Ints("tensors");
  THIMBLE_TRY(CheckTensors(tensors));
  THIMBLE_TRY(CheckMethod(call.attributes));
  const Shape pattern{PatternWords(PatternBlocks(tensors))};
  THIMBLE_TRY(RequireShape("pattern", call.inputs[0], pattern));
  THIMBLE_TRY(CheckWeights(call.inputs[1], tensors));
  if (ports.pools == 2) {
    THIMBLE_TRY(
        CheckMomentum(call.inputs[2], call.inputs[1][0], static_cast<int64_t>(tensors.size())));
  }
  THIMBLE_TRY(RequireShape("threshold", call.inputs[ports.threshold()], Shape{1}));
  THIMBLE_TRY(RequireShape("update", call.inputs[ports.update()], Shape{1}));
  std::vector<Shape> outputs(call.inputs.begin(), call.inputs.end());
  outputs[ports.moved()] = Shape{1};
  return outputs;
}

// What both ops have after their pools, and in common.
OpDef& AddSettings(OpDef& op) {
  return op.Output("next_threshold", DType::kF32)
      .Output("moved", DType::kI32)                  // weights dropped and grown
      .Attribute("tensors", std::vector<int64_t>{})  // elements of each
      .Attribute("method", kRewireDsr)
      .Attribute("quota", int64_t{0})
      .Attribute("fraction", 0.0)
      .Attribute("seed", int64_t{0})
      .ShapeRule(RewireShapes)
      .NoGradient("rewiring is not differentiated")
      .OutputMayReuse("next_pattern", "pattern")
      .OutputMayReuse("next_weights", "weights")
      .OutputMayReuse("next_threshold", "threshold")
      // A comparison for each active weight; random keys are integers.
      .Flops([](const OpCall& call) { return call.inputs[1].elements(); });
}

}  // namespace

OpDef Make_rewire() {
  OpDef op("rewire");
  op.Input("pattern", DType::kI32)
      .Input("weights")
      .StateInput("momentum")
      .Input("threshold", DType::kF32)
      .Input("update", DType::kI32)
      .Output("next_pattern", DType::kI32)
      .Output("next_weights")
      .StateOutput("next_momentum");
  return AddSettings(op)
      .OutputMayReuse("next_momentum", "momentum")
      .CpuKernel<RewireCpu>("RewireCpu")
      .CudaKernel<RewireCuda>("RewireCuda")
      .Reference<RewireReference>();
}

OpDef Make_rewire_plain() {
  OpDef op("rewire_plain");
  op.Input("pattern", DType::kI32)
      .Input("weights")
      .Input("threshold", DType::kF32)
      .Input("update", DType::kI32)
      .Output("next_pattern", DType::kI32)
      .Output("next_weights");
  return AddSettings(op)
      .CpuKernel<RewireCpu>("RewirePlainCpu")
      .CudaKernel<RewireCuda>("RewirePlainCuda")
      .Reference<RewireReference>();
}

}  // namespace thimble
