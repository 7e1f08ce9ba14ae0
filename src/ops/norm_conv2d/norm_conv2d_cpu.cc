#include <algorithm>
#include <array>

#include "thimble/ops/batch_norm/channel_passes.h"
#include "thimble/ops/conv2d/line_packer.h"
#include "thimble/ops/norm_conv2d/norm_conv2d.h"

namespace thimble {

namespace norm_conv2d {
namespace {

constexpr size_t kMaxInputs = 12;

template <class T>
struct ConvolutionInputs {
  std::array<T, kMaxInputs> all;
  size_t count = 0;

  explicit ConvolutionInputs(std::span<const T> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == 0 || i > kNormConstants) all[count++] = inputs[i];
    }
  }
  std::span<const T> span() const { return {all.data(), count}; }
};

size_t Channels(const Shape& x) { return static_cast<size_t>(x[x.rank() - 1]); }

// One scale for each channel, in whole cache lines: the scratch of the convolution is aligned.
size_t ScaleBytes(const Shape& x) { return (Channels(x) * sizeof(float) + 63) / 64 * 64; }

}  // namespace

std::string_view Declines(const OpCall& call) {
  // Lines of fp32 are read in place, and two lines of bf16 may be read in pairs.
  return call.input_type(0) == DType::kF16 ? "" : "reads images in fp16 only";
}

size_t ScratchBytes(const OpCall& call, const KernelLimits& limits,
                    ScratchFunction of_convolution) {
  const ConvolutionInputs<Shape> inputs(call.inputs);
  const ConvolutionInputs<DType> types(call.input_types);
  return ScaleBytes(call.inputs[0]) +
         of_convolution({inputs.span(), call.outputs, call.attributes, types.span(),
                         call.output_types, call.has_packed},
                        limits);
}

void Run(const KernelCall& call, void (*convolution)(const KernelCall& call)) {
  const Shape& x = call.in_shape(0);
  auto* scale = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
  const float* gamma = call.In<float>(1);
  const float* variance = call.In<float>(4);
  const double epsilon = call.attributes.Float("epsilon");
  // All of it: the convolution may need no scratch, and then this is the end.
  std::fill_n(scale, ScaleBytes(x) / sizeof(float), 0.0F);
  for (size_t c = 0; c < Channels(x); ++c) scale[c] = ChannelScale(gamma[c], variance[c], epsilon);
  const InputNorm norm{
      {call.In<float>(3), scale, call.In<float>(2), call.attributes.Int("relu") != 0},
      static_cast<DType>(call.attributes.Int("norm_type"))};
  ConvolutionInputs<TensorView> inputs(call.inputs);
  inputs.all[0].norm = &norm;
  convolution({inputs.span(), call.outputs, call.attributes, call.scratch.subspan(ScaleBytes(x)),
               call.pool, call.stream});
}

}  // namespace norm_conv2d

}  // namespace thimble
