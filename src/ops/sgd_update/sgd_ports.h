// The ops that sgd_update_cuda.cu knows, where their inputs and outputs are, and the settings and
// arrays of a call as GPU code takes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "thimble/graph/kernel.h"
#include "thimble/ops/sgd_update/sgd_tensors.h"
#include "thimble/ops/sgd_update/sgd_update.h"

namespace thimble {

enum class SgdOp { kUpdate, kPlain, kGather, kApply, kApplyFeedback };

// What an op reads and writes besides weights.
constexpr bool OnlyApplies(SgdOp op) { return op == SgdOp::kApply || op == SgdOp::kApplyFeedback; }
constexpr bool HasGradient(SgdOp op) { return !OnlyApplies(op); }
constexpr bool HasMomentum(SgdOp op) { return op != SgdOp::kPlain; }
constexpr bool WritesWeight(SgdOp op) { return op != SgdOp::kGather; }
constexpr bool WritesMomentum(SgdOp op) { return op != SgdOp::kPlain && op != SgdOp::kApply; }
constexpr bool CanFeedBack(SgdOp op) { return WritesWeight(op) && WritesMomentum(op); }

// Where each op has its inputs and outputs.
inline constexpr size_t kNoPort = ~size_t{0};
struct SgdPorts {
  SgdInputs inputs;
  size_t gradient;
  size_t momentum;
  size_t learning_rate;
  size_t seen;
  size_t next_weight;
  size_t next_momentum;
};
constexpr SgdPorts PortsOf(SgdOp op) {
  switch (op) {
    case SgdOp::kUpdate:
      return {kSgdUpdateInputs, 1, 2, 3, kNoPort, 0, 1};
    case SgdOp::kPlain:
      return {kSgdPlainInputs, 1, kNoPort, 2, kNoPort, 0, kNoPort};
    case SgdOp::kGather:
      return {kSgdGatherInputs, 1, 2, kNoPort, 3, kNoPort, 0};
    case SgdOp::kApply:
      return {kSgdApplyInputs, kNoPort, 1, 2, kNoPort, 0, kNoPort};
    case SgdOp::kApplyFeedback:
      return {kSgdApplyInputs, kNoPort, 1, 2, kNoPort, 0, 1};
  }
  return {};
}

template <SgdOp kOp>
SgdSettings SgdSettingsOf(const KernelCall& call) {
  constexpr SgdPorts kPorts = PortsOf(kOp);
  SgdSettings settings;
  if constexpr (kPorts.learning_rate != kNoPort)
    settings.learning_rate = call.In<float>(kPorts.learning_rate);
  if constexpr (kPorts.seen != kNoPort) settings.seen = call.In<int32_t>(kPorts.seen);
  if (call.inputs.size() > kPorts.inputs.update) {
    settings.update = call.In<int32_t>(kPorts.inputs.update);
  }
  if (call.inputs.size() > kPorts.inputs.factor) {
    settings.factor = call.In<float>(kPorts.inputs.factor);
  }
  settings.weight_type = call.inputs[0].dtype;
  if constexpr (kPorts.gradient != kNoPort)
    settings.gradient_type = call.inputs[kPorts.gradient].dtype;
  if constexpr (kPorts.momentum != kNoPort)
    settings.momentum_type = call.inputs[kPorts.momentum].dtype;
  if constexpr (kPorts.next_weight != kNoPort) {
    settings.next_weight_type = call.outputs[kPorts.next_weight].dtype;
  }
  if constexpr (kPorts.next_momentum != kNoPort) {
    settings.next_momentum_type = call.outputs[kPorts.next_momentum].dtype;
  }
  if constexpr (HasGradient(kOp)) {
    settings.weight_decay = static_cast<float>(call.attributes.Float("weight_decay"));
  }
  if constexpr (WritesMomentum(kOp)) {
    settings.momentum = static_cast<float>(call.attributes.Float("momentum"));
  }
  if constexpr (CanFeedBack(kOp)) {
    settings.feedback_rate = static_cast<float>(call.attributes.Float("feedback_rate"));
  }
  if constexpr (kOp == SgdOp::kUpdate) {
    settings.nesterov = call.attributes.Int("nesterov") != 0;
  }
  if (RoundsAtRandom(call.attributes)) {
    const RoundingDraw draw = DrawOf(call.attributes);
    settings.stochastic = true;
    settings.key = draw.source.key();
    settings.streams_from = draw.tensor & ~0xFFFFU;
  }
  return settings;
}

// Elements [begin, end) of the arrays of a call.
template <SgdOp kOp>
SgdTensor SgdPiece(const KernelCall& call, int64_t begin, int64_t end) {
  constexpr SgdPorts kPorts = PortsOf(kOp);
  const auto at = [&](const TensorView& view) {
    return static_cast<std::byte*>(view.data) +
           StorageBytes(view.dtype, static_cast<size_t>(begin));
  };
  SgdTensor tensor;
  tensor.weight = at(call.inputs[0]);
  if constexpr (kPorts.gradient != kNoPort) tensor.gradient = at(call.inputs[kPorts.gradient]);
  if constexpr (kPorts.momentum != kNoPort) tensor.momentum = at(call.inputs[kPorts.momentum]);
  if constexpr (kPorts.next_weight != kNoPort)
    tensor.next_weight = at(call.outputs[kPorts.next_weight]);
  if constexpr (kPorts.next_momentum != kNoPort)
    tensor.next_momentum = at(call.outputs[kPorts.next_momentum]);
  tensor.elements = static_cast<int>(end - begin);
  return tensor;
}

}  // namespace thimble
