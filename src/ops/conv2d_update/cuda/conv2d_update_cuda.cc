#include "thimble/ops/conv2d_update/cuda/conv2d_update_cuda.h"

#include <algorithm>

#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d_update/conv2d_update.h"
#include "thimble/ops/conv2d_update/cuda/update_blocks.h"
#include "thimble/ops/conv2d_update/user_views.h"
#include "thimble/ops/sgd_update/sgd_ports.h"

namespace thimble {
namespace {

constexpr auto kBlockNumbers = static_cast<int64_t>(kQ8BlockNumbers);

GradientUse AccumulateUse(const KernelCall& call) {
  GradientUse use{.user = SumUser::kAccumulate};
  use.settings.seen = call.In<int32_t>(2);
  use.settings.weight_type = call.inputs[0].dtype;
  use.settings.gradient_type = call.inputs[kUpdateGradientInput].dtype;
  use.settings.next_weight_type = call.outputs[0].dtype;
  use.tensor.weight = call.inputs[0].data;
  use.tensor.next_weight = call.outputs[0].data;
  return use;
}

template <SgdOp kOp>
GradientUse SgdUse(const KernelCall& call) {
  GradientUse use{.user = SumUser::kSgd, .op = kOp};
  use.settings = SgdSettingsOf<kOp>(call);
  use.tensor = SgdPiece<kOp>(call, 0, call.out_shape(0).elements());
  use.stream =
      use.settings.streams_from + static_cast<uint16_t>(call.attributes.Int("stream") & 0xFFFF);
  return use;
}

// What the second op does with the gradient.
GradientUse UseOf(SecondOp second, const KernelCall& both) {
  const auto type = static_cast<DType>(both.attributes.Int("gradient_type"));
  const UserViews views(both, {nullptr, type, both.out_shape(0)});
  const KernelCall call = views.Call(both);
  switch (second) {
    case SecondOp::kAccumulate:
      return AccumulateUse(call);
    case SecondOp::kSgdGather:
      return SgdUse<SgdOp::kGather>(call);
    case SecondOp::kSgdUpdate:
      return SgdUse<SgdOp::kUpdate>(call);
    case SecondOp::kSgdUpdatePlain:
      return SgdUse<SgdOp::kPlain>(call);
  }
  return {};
}

// ---- If an array is q8: parts of the gradient in scratch

// How the gradient is divided, and where it is in scratch: a ring of gradients, then the scratch of
// conv2d_grad_weight, then a word that every part writes.
struct UpdateParts {
  int64_t out_channels = 0;
  int64_t window = 0;         // elements of an output channel
  int64_t channels_each = 0;  // output channels of a part; the last may have fewer
  int64_t ring = 0;           // numbers: those of a part, and what waits from the part before
  DType gradient_type = DType::kF32;

  // Fewer parts need fewer launches, smaller ones less memory. With 64 output channels a kernel
  // still has blocks for half of a large GPU; for wrn-28-2 a part has at most 73,728 elements.
  static constexpr int64_t kChannels = 64;
  static constexpr int64_t kElements = 73728;

  explicit UpdateParts(const OpCall& call)
      : gradient_type(static_cast<DType>(call.attributes.Int("gradient_type"))) {
    const Conv2dGeometry g = Conv2dGradWeightGeometryOf(call).value();
    out_channels = g.out_channels;
    window = g.window_elements();
    const int64_t fitting = kElements / std::max<int64_t>(1, window) / kChannels * kChannels;
    channels_each = std::min(out_channels, std::max(kChannels, fitting));
    const bool is_one = channels_each == out_channels;
    const int64_t most = channels_each * window + (is_one ? 0 : kBlockNumbers - 1);
    ring = (most + kBlockNumbers - 1) / kBlockNumbers * kBlockNumbers;
  }
  size_t RingBytes() const { return StorageBytes(gradient_type, static_cast<size_t>(ring)); }
  bool is_empty() const { return out_channels * window == 0; }
};

bool IsQ8(DType type) { return type == DType::kQ8; }

// Updates get no infinite gradient from a finite sum.
bool LimitsF16(const GradientUse& use, DType gradient_type) {
  return use.user == SumUser::kSgd && gradient_type == DType::kF16;
}

void RunParts(GradWeightKernel first, const KernelCall& call, const UpdateParts& parts,
              const GradientUse& use) {
  const Numbers ring{call.scratch.data(), parts.gradient_type};
  const auto ring_size = static_cast<int>(parts.ring);
  const PackedPlace& packed = call.outputs[0].packed;
  for (int64_t begin = 0; begin < parts.out_channels; begin += parts.channels_each) {
    const int64_t end = std::min(parts.out_channels, begin + parts.channels_each);
    LaunchGradWeight(first, call, {begin, end}, call.scratch.data() + parts.RingBytes(),
                     {.numbers = ring,
                      .packed = packed,
                      .ring = ring_size,
                      .limits_f16 = LimitsF16(use, parts.gradient_type)});
    LaunchUpdateBlocks(call.stream,
                       {.use = use,
                        .packed = packed,
                        .gradients = {ring.data, ring.type},
                        .ring = ring_size,
                        .elements = parts.out_channels * parts.window,
                        .first = begin * parts.window,
                        .end = end * parts.window,
                        .last_word = reinterpret_cast<uint32_t*>(  // NOLINT: raw storage
                            call.scratch.data() + call.scratch.size() - sizeof(uint32_t))});
  }
}

}  // namespace

size_t Conv2dUpdateCudaScratchBytes(GradWeightKernel first, const OpCall& call) {
  const bool has_q8 = std::any_of(call.input_types.begin(), call.input_types.end(), IsQ8) ||
                      std::any_of(call.output_types.begin(), call.output_types.end(), IsQ8);
  const UpdateParts parts(call);
  if (!has_q8) return GradWeightScratchBytes(first, call, {0, parts.out_channels});
  if (parts.is_empty()) return 0;
  return parts.RingBytes() + GradWeightScratchBytes(first, call, {0, parts.channels_each}) +
         sizeof(uint32_t);
}

void RunConv2dUpdateCuda(GradWeightKernel first, SecondOp second, const KernelCall& call) {
  const GradientUse use = UseOf(second, call);
  const auto is_q8 = [](const TensorView& view) { return IsQ8(view.dtype); };
  const bool has_q8 = std::any_of(call.inputs.begin(), call.inputs.end(), is_q8) ||
                      std::any_of(call.outputs.begin(), call.outputs.end(), is_q8);
  const std::array<Shape, kConv2dInputs> shapes = {call.in_shape(0), call.in_shape(1)};
  const UpdateParts parts(OpCall{shapes, {}, call.attributes});
  if (parts.is_empty()) return;
  if (has_q8) return RunParts(first, call, parts, use);
  // The type decides how factors are copied; nothing is stored there.
  LaunchGradWeight(first, call, {0, parts.out_channels}, call.scratch.data(),
                   {.numbers = {nullptr, use.settings.gradient_type},
                    .packed = call.outputs[0].packed,
                    .limits_f16 = LimitsF16(use, parts.gradient_type),
                    .use = use});
}

}  // namespace thimble
