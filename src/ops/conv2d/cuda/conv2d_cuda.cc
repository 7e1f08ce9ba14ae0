#include "thimble/ops/conv2d/cuda/conv2d_cuda.h"

#include <algorithm>
#include <array>
#include <climits>
#include <optional>

#include "thimble/ops/conv2d/cuda/plain_convolution.h"
#include "thimble/ops/conv2d/cuda/tap_convolution.h"
#include "thimble/ops/conv2d/cuda/weight_gradient.h"
#include "thimble/ops/conv2d/cuda/weight_gradient_short.h"
#include "thimble/ops/conv2d/geometry.h"

namespace thimble {
namespace {

constexpr std::string_view kTooOdd = "the tiled kernel does not support this shape";
constexpr std::string_view kTooLarge = "a size exceeds 32 bits";
constexpr std::string_view kNotShort = "takes two factors of the same 16-bit type only";
constexpr std::string_view kNotFloats = "takes factors in f32 only";
constexpr std::string_view kNotMixed = "takes weights in f32 beside a factor of 16 bits only";

int Narrow(int64_t number) { return static_cast<int>(number); }

// The tiled kernels count blocks and elements of an image in ints.
bool CountsFit(const Conv2dGeometry& g) {
  const int64_t x = g.height * g.width * g.channels;
  const int64_t y = g.out_height * g.out_width * g.out_channels;
  const int64_t w = g.out_channels * g.window_elements();
  return std::max({x, y, w}) <= INT_MAX && g.batch * g.height * g.width <= INT_MAX &&
         g.batch * g.out_height * g.out_width <= INT_MAX;
}

// Taps along one axis that reach result positions of one residue.
struct AxisTaps {
  int positions = 0;
  int first = 0;                            // smallest source position, for result position 0
  int reach = 0;                            // largest source position, relative to `first`
  std::array<int16_t, kMaxTaps> offsets{};  // by tap, relative to `first`
  std::array<bool, kMaxTaps> reaches{};
};

AxisTaps ForwardAxis(int64_t out, int64_t kernel, int64_t padding) {
  AxisTaps axis{.positions = Narrow(out), .first = -Narrow(padding), .reach = Narrow(kernel - 1)};
  for (int64_t tap = 0; tap < kernel; ++tap) {
    axis.offsets[tap] = static_cast<int16_t>(tap);
    axis.reaches[tap] = true;
  }
  return axis;
}

// A pixel `residue + i * stride` of x is read at tap k by output (residue + padding - k) / stride +
// i.
AxisTaps GradientAxis(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                      int64_t residue) {
  AxisTaps axis{.positions = Narrow(std::max<int64_t>(0, (size - residue + stride - 1) / stride))};
  int first = INT_MAX;
  int last = INT_MIN;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    const int64_t distance = residue + padding - tap;
    axis.reaches[tap] = distance % stride == 0;
    if (!axis.reaches[tap]) continue;
    first = std::min(first, Narrow(distance / stride));
    last = std::max(last, Narrow(distance / stride));
  }
  if (first > last) return axis;
  axis.first = first;
  axis.reach = last - first;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    if (!axis.reaches[tap]) continue;
    axis.offsets[tap] = static_cast<int16_t>((residue + padding - tap) / stride - first);
  }
  return axis;
}

TapGrid MakeGrid(const Conv2dGeometry& g, const AxisTaps& rows, const AxisTaps& columns) {
  TapGrid grid{};
  grid.rows = rows.positions;
  grid.columns = columns.positions;
  grid.first_row = rows.first;
  grid.first_column = columns.first;
  for (int64_t kh = 0; kh < g.kernel_height; ++kh) {
    for (int64_t kw = 0; kw < g.kernel_width; ++kw) {
      if (!rows.reaches[kh] || !columns.reaches[kw]) continue;
      grid.taps[grid.num_taps++] = {rows.offsets[kh], columns.offsets[kw],
                                    static_cast<int16_t>(kh * g.kernel_width + kw)};
    }
  }
  return grid;
}

std::optional<TapConvolution> Fitting(const TapConvolution& convolution, Math math) {
  return FitsTapConvolution(convolution, math) ? std::optional(convolution) : std::nullopt;
}

// nullopt if tiles cannot handle the shape.
std::optional<TapConvolution> ForwardTaps(const Conv2dGeometry& g, Math math) {
  if (g.kernel_height * g.kernel_width > kMaxTaps || !CountsFit(g)) return std::nullopt;
  const bool one_tap = g.kernel_height == 1 && g.kernel_width == 1;
  if (g.stride > 16 || g.padding > 1024) return std::nullopt;
  TapConvolution c{};
  c.batch = Narrow(g.batch);
  c.height = Narrow(g.height);
  c.width = Narrow(g.width);
  c.channels = Narrow(g.channels);
  c.out_height = Narrow(g.out_height);
  c.out_width = Narrow(g.out_width);
  c.out_channels = Narrow(g.out_channels);
  c.out_step = 1;
  c.step = one_tap ? 1 : Narrow(g.stride);
  c.load_step = one_tap ? Narrow(g.stride) : 1;
  c.reach_rows = Narrow(g.kernel_height - 1);
  c.reach_columns = Narrow(g.kernel_width - 1);
  c.n_stride = Narrow(g.window_elements());
  c.k_stride = 1;
  c.t_stride = Narrow(g.channels);
  c.num_grids = 1;
  c.grids[0] = MakeGrid(g, ForwardAxis(g.out_height, g.kernel_height, g.padding),
                        ForwardAxis(g.out_width, g.kernel_width, g.padding));
  return Fitting(c, math);
}

std::optional<TapConvolution> GradInputTaps(const Conv2dGeometry& g, Math math) {
  if (g.kernel_height * g.kernel_width > kMaxTaps || !CountsFit(g)) return std::nullopt;
  if (g.stride * g.stride > kMaxResidues || g.padding > 1024) return std::nullopt;
  TapConvolution c{};
  c.batch = Narrow(g.batch);
  c.height = Narrow(g.out_height);
  c.width = Narrow(g.out_width);
  c.channels = Narrow(g.out_channels);
  c.out_height = Narrow(g.height);
  c.out_width = Narrow(g.width);
  c.out_channels = Narrow(g.channels);
  c.out_step = Narrow(g.stride);
  c.step = 1;
  c.load_step = 1;
  c.n_stride = 1;
  c.k_stride = Narrow(g.window_elements());
  c.t_stride = Narrow(g.channels);
  for (int64_t residue = 0; residue < g.stride * g.stride; ++residue) {
    const int64_t row = residue / g.stride;
    const int64_t column = residue % g.stride;
    const AxisTaps rows = GradientAxis(g.height, g.kernel_height, g.stride, g.padding, row);
    const AxisTaps columns = GradientAxis(g.width, g.kernel_width, g.stride, g.padding, column);
    TapGrid grid = MakeGrid(g, rows, columns);
    grid.out_row = Narrow(row);
    grid.out_column = Narrow(column);
    c.grids[c.num_grids++] = grid;
    c.reach_rows = std::max(c.reach_rows, rows.reach);
    c.reach_columns = std::max(c.reach_columns, columns.reach);
  }
  return Fitting(c, math);
}

std::optional<WeightGradient> FittingWeightGradient(const Conv2dGeometry& g, Math math) {
  if (g.kernel_height != g.kernel_width || !CountsFit(g)) return std::nullopt;
  if (g.stride > 16 || g.padding > 1024) return std::nullopt;
  const WeightGradient gradient{
      Narrow(g.batch),      Narrow(g.height),    Narrow(g.width),        Narrow(g.channels),
      Narrow(g.out_height), Narrow(g.out_width), Narrow(g.out_channels), Narrow(g.kernel_height),
      Narrow(g.stride),     Narrow(g.padding)};
  const bool fits =
      IsShort(math) ? FitsShortWeightGradient(gradient) : FitsWeightGradient(gradient);
  return fits ? std::optional(gradient) : std::nullopt;
}

// Sizes and positions in the padded image are ints; each weight is one block of a grid.
std::string_view PlainDeclines(const Conv2dGeometry& g) {
  const int64_t largest =
      std::max({g.batch, g.height + 2 * g.padding, g.width + 2 * g.padding, g.channels,
                g.out_channels, g.out_channels * g.window_elements()});
  return largest <= INT_MAX ? "" : kTooLarge;
}

PlainConvolution Plain(const Conv2dGeometry& g) {
  return {Narrow(g.batch),        Narrow(g.height),        Narrow(g.width),
          Narrow(g.channels),     Narrow(g.out_height),    Narrow(g.out_width),
          Narrow(g.out_channels), Narrow(g.kernel_height), Narrow(g.kernel_width),
          Narrow(g.stride),       Narrow(g.padding)};
}

// The geometry of a kernel call.
template <class GeometryOf>
Conv2dGeometry Running(const KernelCall& call, const GeometryOf& geometry_of) {
  const std::array<Shape, 2> inputs = {call.in_shape(0), call.in_shape(1)};
  const std::array<Shape, 1> outputs = {call.out_shape(0)};
  return geometry_of(OpCall{inputs, outputs, call.attributes}).value();
}

// What conv2d_add adds; null for conv2d.
ConstNumbers Other(const KernelCall& call) {
  return call.inputs.size() > 2 ? ConstNumbersOf(call.inputs[2]) : ConstNumbers{};
}

// How factors stored in this type are multiplied. Requires 16 bits.
Math ShortMath(DType type) { return type == DType::kF16 ? Math::kF16 : Math::kBF16; }

bool AreShort(DType one, DType other) { return IsShortNumber(one) && one == other; }
bool AreMixed(DType weights, DType other) { return weights == DType::kF32 && IsShortNumber(other); }

void RunForward(const KernelCall& call, Math math) {
  const auto taps = ForwardTaps(Running(call, Conv2dGeometryOf), math);
  LaunchTapConvolution(call.stream, *taps, math,
                       {.source = ConstNumbersOf(call.inputs[0]),
                        .weights = ConstNumbersOf(call.inputs[1]),
                        .packed = call.inputs[1].packed,
                        .other = Other(call),
                        .result = NumbersOf(call.outputs[0])});
}

void RunGradInput(const KernelCall& call, Math math) {
  const auto taps = GradInputTaps(Running(call, Conv2dGradInputGeometryOf), math);
  LaunchTapConvolution(call.stream, *taps, math,
                       {.source = ConstNumbersOf(call.inputs[1]),
                        .weights = ConstNumbersOf(call.inputs[0]),
                        .packed = call.inputs[0].packed,
                        .other = {},
                        .result = NumbersOf(call.outputs[0])});
}

// How conv2d_grad_weight multiplies factors of this type.
Math GradWeightMath(GradWeightKernel kernel, DType type) {
  if (kernel == GradWeightKernel::kShort) return ShortMath(type);
  return kernel == GradWeightKernel::kFp32 ? Math::kFp32 : Math::kTf32;
}

WeightGradient PartOf(WeightGradient gradient, const OutChannels& channels) {
  gradient.first_out = Narrow(channels.first);
  gradient.end_out = Narrow(channels.end);
  return gradient;
}

// All of it, stored.
void RunGradWeight(const KernelCall& call, GradWeightKernel kernel) {
  LaunchGradWeight(kernel, call, {0, call.out_shape(0)[0]}, call.scratch.data(),
                   {.numbers = NumbersOf(call.outputs[0]), .packed = call.outputs[0].packed});
}
OutChannels AllOutChannels(const OpCall& call) { return {0, call.inputs[1][3]}; }

std::string_view ForwardDeclines(const OpCall& call, Math math) {
  return ForwardTaps(Conv2dGeometryOf(call).value(), math) ? "" : kTooOdd;
}
std::string_view GradInputDeclines(const OpCall& call, Math math) {
  return GradInputTaps(Conv2dGradInputGeometryOf(call).value(), math) ? "" : kTooOdd;
}
std::string_view TiledGradWeightDeclines(const OpCall& call, Math math) {
  return FittingWeightGradient(Conv2dGradWeightGeometryOf(call).value(), math) ? "" : kTooOdd;
}

}  // namespace

std::string_view Conv2dShortCuda::Declines(const OpCall& call) {
  if (!AreShort(call.input_type(0), call.input_type(1))) return kNotShort;
  return ForwardDeclines(call, Math::kF16);
}
void Conv2dShortCuda::Run(const KernelCall& call) {
  RunForward(call, ShortMath(call.inputs[0].dtype));
}
std::string_view Conv2dMixedCuda::Declines(const OpCall& call) {
  if (!AreMixed(call.input_type(1), call.input_type(0))) return kNotMixed;
  return ForwardDeclines(call, Math::kF16);
}

std::string_view Conv2dTf32Cuda::Declines(const OpCall& call) {
  return ForwardDeclines(call, Math::kTf32);
}
void Conv2dTf32Cuda::Run(const KernelCall& call) { RunForward(call, Math::kTf32); }

std::string_view Conv2dFp32Cuda::Declines(const OpCall& call) {
  return Conv2dTf32Cuda::Declines(call);
}
void Conv2dFp32Cuda::Run(const KernelCall& call) { RunForward(call, Math::kFp32); }

std::string_view Conv2dPlainCuda::Declines(const OpCall& call) {
  return PlainDeclines(Conv2dGeometryOf(call).value());
}
void Conv2dPlainCuda::Run(const KernelCall& call) {
  LaunchPlainForward(call.stream, Plain(Running(call, Conv2dGeometryOf)),
                     ConstNumbersOf(call.inputs[0]), ConstNumbersOf(call.inputs[1]),
                     call.inputs[1].packed, Other(call), NumbersOf(call.outputs[0]));
}

std::string_view Conv2dGradInputShortCuda::Declines(const OpCall& call) {
  if (!AreShort(call.input_type(0), call.input_type(1))) return kNotShort;
  return GradInputDeclines(call, Math::kF16);
}
void Conv2dGradInputShortCuda::Run(const KernelCall& call) {
  RunGradInput(call, ShortMath(call.inputs[1].dtype));
}
std::string_view Conv2dGradInputMixedCuda::Declines(const OpCall& call) {
  if (!AreMixed(call.input_type(0), call.input_type(1))) return kNotMixed;
  return GradInputDeclines(call, Math::kF16);
}

std::string_view Conv2dGradInputTf32Cuda::Declines(const OpCall& call) {
  return GradInputDeclines(call, Math::kTf32);
}
void Conv2dGradInputTf32Cuda::Run(const KernelCall& call) { RunGradInput(call, Math::kTf32); }

std::string_view Conv2dGradInputFp32Cuda::Declines(const OpCall& call) {
  return Conv2dGradInputTf32Cuda::Declines(call);
}
void Conv2dGradInputFp32Cuda::Run(const KernelCall& call) { RunGradInput(call, Math::kFp32); }

std::string_view Conv2dGradInputPlainCuda::Declines(const OpCall& call) {
  return PlainDeclines(Conv2dGradInputGeometryOf(call).value());
}
void Conv2dGradInputPlainCuda::Run(const KernelCall& call) {
  LaunchPlainGradInput(call.stream, Plain(Running(call, Conv2dGradInputGeometryOf)),
                       ConstNumbersOf(call.inputs[0]), call.inputs[0].packed,
                       ConstNumbersOf(call.inputs[1]), NumbersOf(call.outputs[0]));
}

std::string_view GradWeightDeclines(GradWeightKernel kernel, const OpCall& call) {
  switch (kernel) {
    case GradWeightKernel::kShort:
      if (!AreShort(call.input_type(0), call.input_type(1))) return kNotShort;
      return TiledGradWeightDeclines(call, Math::kF16);
    case GradWeightKernel::kFp32:
      if (call.input_type(0) != DType::kF32 || call.input_type(1) != DType::kF32) return kNotFloats;
      return TiledGradWeightDeclines(call, Math::kTf32);
    case GradWeightKernel::kTf32:
      return TiledGradWeightDeclines(call, Math::kTf32);
    case GradWeightKernel::kPlain:
      return PlainDeclines(Conv2dGradWeightGeometryOf(call).value());
  }
  return {};
}

size_t GradWeightScratchBytes(GradWeightKernel kernel, const OpCall& call,
                              const OutChannels& channels) {
  if (kernel == GradWeightKernel::kPlain) return 0;
  const bool is_short = kernel == GradWeightKernel::kShort;
  const auto gradient = FittingWeightGradient(Conv2dGradWeightGeometryOf(call).value(),
                                              is_short ? Math::kF16 : Math::kTf32);
  const WeightGradient part = PartOf(*gradient, channels);
  return is_short ? ShortWeightGradientScratchBytes(part) : WeightGradientScratchBytes(part);
}

void LaunchGradWeight(GradWeightKernel kernel, const KernelCall& call, const OutChannels& channels,
                      std::byte* scratch, const SumTarget& dw) {
  const Conv2dGeometry g = Running(call, Conv2dGradWeightGeometryOf);
  const ConstNumbers x = ConstNumbersOf(call.inputs[0]);
  const ConstNumbers dy = ConstNumbersOf(call.inputs[1]);
  if (kernel == GradWeightKernel::kPlain) {
    const int64_t window = g.window_elements();
    return LaunchPlainGradWeight(
        call.stream, Plain(g), x, dy,
        {channels.first * window, (channels.end - channels.first) * window}, dw);
  }
  const Math math = GradWeightMath(kernel, x.type);
  const WeightGradient part = PartOf(*FittingWeightGradient(g, math), channels);
  const WeightGradientArrays arrays{
      .x = x, .dy = dy, .dw = dw, .scratch = reinterpret_cast<float*>(scratch)};  // NOLINT
  if (IsShort(math)) {
    LaunchShortWeightGradient(call.stream, part, math, arrays);
  } else {
    LaunchWeightGradient(call.stream, part, math, arrays);
  }
}

std::string_view Conv2dGradWeightShortCuda::Declines(const OpCall& call) {
  return GradWeightDeclines(GradWeightKernel::kShort, call);
}
size_t Conv2dGradWeightShortCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GradWeightScratchBytes(GradWeightKernel::kShort, call, AllOutChannels(call));
}
void Conv2dGradWeightShortCuda::Run(const KernelCall& call) {
  RunGradWeight(call, GradWeightKernel::kShort);
}

std::string_view Conv2dGradWeightTf32Cuda::Declines(const OpCall& call) {
  return GradWeightDeclines(GradWeightKernel::kTf32, call);
}
size_t Conv2dGradWeightTf32Cuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GradWeightScratchBytes(GradWeightKernel::kTf32, call, AllOutChannels(call));
}
void Conv2dGradWeightTf32Cuda::Run(const KernelCall& call) {
  RunGradWeight(call, GradWeightKernel::kTf32);
}

std::string_view Conv2dGradWeightFp32Cuda::Declines(const OpCall& call) {
  return GradWeightDeclines(GradWeightKernel::kFp32, call);
}
size_t Conv2dGradWeightFp32Cuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GradWeightScratchBytes(GradWeightKernel::kFp32, call, AllOutChannels(call));
}
void Conv2dGradWeightFp32Cuda::Run(const KernelCall& call) {
  RunGradWeight(call, GradWeightKernel::kFp32);
}

std::string_view Conv2dGradWeightPlainCuda::Declines(const OpCall& call) {
  return GradWeightDeclines(GradWeightKernel::kPlain, call);
}
void Conv2dGradWeightPlainCuda::Run(const KernelCall& call) {
  RunGradWeight(call, GradWeightKernel::kPlain);
}

}  // namespace thimble
