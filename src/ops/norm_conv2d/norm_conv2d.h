// CPU kernels of convolutions that read x through a batch norm: those of the convolutions, which
// get a view of x that is normalised line by line as it is read (conv2d/line_packer.h).
//
// Inputs: x, gamma, beta, mean, variance, then those of the convolution's op without x.
#pragma once

#include <array>

#include "thimble/graph/kernel.h"
#include "thimble/ops/conv2d/conv2d.h"

namespace thimble {

// gamma, beta, mean, variance.
inline constexpr size_t kNormConstants = 4;

namespace norm_conv2d {

std::string_view Declines(const OpCall& call);
using ScratchFunction = size_t (*)(const OpCall& call, const KernelLimits& limits);
size_t ScratchBytes(const OpCall& call, const KernelLimits& limits, ScratchFunction of_convolution);
void Run(const KernelCall& call, void (*convolution)(const KernelCall& call));

}  // namespace norm_conv2d

template <class Convolution>
struct NormConv2dCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // not x
  static constexpr double kRounding = 2;      // the norm rounds as well as the sum
  static std::string_view Declines(const OpCall& call) { return norm_conv2d::Declines(call); }
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits) {
    return norm_conv2d::ScratchBytes(call, limits, &Convolution::ScratchBytes);
  }
  static void Run(const KernelCall& call) { norm_conv2d::Run(call, &Convolution::Run); }
};

// y may be what is added: sums of 16 bits are formed in a tile, which reads what is added before it
// is stored.
struct NormConv2dAddCpu : NormConv2dCpu<Conv2dAddCpu> {
  static std::string_view Declines(const OpCall& call) {
    if (!IsShortNumber(call.output_type(0))) return "stores numbers of 16 bits only";
    return norm_conv2d::Declines(call);
  }
};

// dx of the norm. The gradient between norm and convolution is computed for some samples at a time,
// twice: for the sums over all samples, then for dx.
struct NormConv2dGradInputCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;  // w
  static constexpr double kRounding = 2;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct NormConv2dGradInputPairCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static constexpr double kRounding = 2;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// A convolution that reads the norm's output.
struct NormGradientSource {
  size_t w;  // index among the inputs; then comes dy
  int64_t stride;
  int64_t padding;
};
// Inputs of both ops: w, dy, x, gamma, beta, mean, variance, and then `other`, or the second w, dy.
inline constexpr size_t kOtherOfNormGradient = 7;
inline std::array<NormGradientSource, 2> NormGradientSources(const Attributes& attributes) {
  const auto number = [&](const char* name) {
    return attributes.Find(name) == nullptr ? 0 : attributes.Int(name);
  };
  return {{{0, number("stride"), number("padding")},
           {kOtherOfNormGradient, number("second_stride"), number("second_padding")}}};
}

}  // namespace thimble
