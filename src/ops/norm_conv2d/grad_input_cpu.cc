#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "thimble/ops/add/add.h"
#include "thimble/ops/batch_norm/norm_gradient.h"
#include "thimble/ops/conv2d/grad_input.h"
#include "thimble/ops/norm_conv2d/norm_conv2d.h"
#include "thimble/ops/norm_conv2d/reference.h"

namespace thimble {
namespace {

// Pieces have more samples up to this size of their gradient: the weights are packed for each.
constexpr size_t kPieceBytes = size_t{64} << 10;

DType GradientType(const Attributes& attributes) {
  return static_cast<DType>(attributes.Int("gradient_type"));
}

// How the samples are divided: into pieces that have whole samples and whole chunks of the norm's
// sums, because these decide the order of additions.
struct SamplePieces {
  ChannelRows rows;
  size_t samples = 1;  // of a piece
  size_t chunks = 1;

  SamplePieces(const Shape& x, const Attributes& attributes) : rows(x, attributes) {
    if (x.elements() == 0) return;
    const auto rows_per_sample = static_cast<size_t>(x[1] * x[2]);
    size_t piece_rows = std::lcm(rows.part(0).rows_per_chunk, rows_per_sample);
    const size_t bytes = StorageBytes(GradientType(attributes), piece_rows * rows.channels);
    piece_rows *= std::max<size_t>(1, kPieceBytes / bytes);
    samples = std::min(static_cast<size_t>(x[0]), piece_rows / rows_per_sample);
    chunks = piece_rows / rows.part(0).rows_per_chunk;
  }
};

Shape WithSamples(const Shape& shape, size_t samples) {
  return {static_cast<int64_t>(samples), shape[1], shape[2], shape[3]};
}

// Some samples of a dense tensor.
TensorView Samples(const TensorView& view, size_t first, size_t count) {
  const auto sample = static_cast<size_t>(view.shape.elements() / view.shape[0]);
  return {(NumbersOf(view) + first * sample).data, view.dtype, WithSamples(view.shape, count)};
}

size_t InCacheLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Scratch: a piece of the gradient between norm and convolution, that of a second convolution, what
// the convolutions need, what the sums need.
struct GradientScratch {
  size_t piece;  // bytes of each of these
  size_t convolution;
  size_t norm;

  GradientScratch(const SamplePieces& pieces, const Shape& x, DType type, size_t convolution_bytes)
      : piece(InCacheLines(
            StorageBytes(type, static_cast<size_t>(WithSamples(x, pieces.samples).elements())))),
        convolution(InCacheLines(convolution_bytes)),
        norm(NormGradientScratchBytes(pieces.rows)) {}
  size_t total(size_t convolutions) const { return convolutions * piece + convolution + norm; }
};

size_t ScratchBytesOf(const OpCall& call, const KernelLimits& limits, bool pair) {
  const Shape& x = call.inputs[2];
  if (x.elements() == 0) return 0;
  const SamplePieces pieces(x, call.attributes);
  const DType type = GradientType(call.attributes);
  size_t bytes = 0;
  const auto sources = NormGradientSources(call.attributes);
  for (size_t i = 0; i < (pair ? 2 : 1); ++i) {
    const NormGradientSource& source = sources[i];
    const Shape& w = call.inputs[source.w];
    const Shape dy = WithSamples(call.inputs[source.w + 1], pieces.samples);
    const Conv2dGeometry g =
        GradInputGeometry(w, dy, {x[1], x[2]}, source.stride, source.padding).value();
    bytes = std::max(
        bytes, GradInputScratchBytes(
                   g, {call.input_type(source.w), call.input_type(source.w + 1), type}, limits));
  }
  return GradientScratch(pieces, x, type, bytes).total(pair ? 2 : 1);
}

// The gradient between the norm and the convolutions, for some samples at a time.
class GradientPieces {
 public:
  GradientPieces(const KernelCall& call, bool pair)
      : call_(call),
        pair_(pair),
        pieces_(call.in_shape(2), call.attributes),
        type_(GradientType(call.attributes)),
        scratch_(pieces_, call.in_shape(2), type_, 0) {}

  const ChannelRows& rows() const { return pieces_.rows; }
  std::span<std::byte> norm_scratch() const { return call_.scratch.last(scratch_.norm); }

  template <class Visit>
  void ForEach(const Visit& visit) const {
    const auto num_samples = static_cast<size_t>(call_.in_shape(2)[0]);
    size_t begin = 0;
    for (size_t first = 0; first < num_samples; first += pieces_.samples) {
      const size_t end = std::min(begin + pieces_.chunks, pieces_.rows.num_chunks);
      visit({begin, end, Compute(first, std::min(pieces_.samples, num_samples - first))});
      begin = end;
    }
  }

 private:
  ConstNumbers Compute(size_t first, size_t count) const {
    const Shape& x = call_.in_shape(2);
    const size_t convolutions = pair_ ? 2 : 1;
    std::array<TensorView, 2> results;
    const auto scratch =
        call_.scratch.subspan(convolutions * scratch_.piece,
                              call_.scratch.size() - convolutions * scratch_.piece - scratch_.norm);
    for (size_t i = 0; i < convolutions; ++i) {
      const NormGradientSource source = NormGradientSources(call_.attributes)[i];
      const TensorView dy = Samples(call_.inputs[source.w + 1], first, count);
      const Conv2dGeometry g = GradInputGeometry(call_.in_shape(source.w), dy.shape, {x[1], x[2]},
                                                 source.stride, source.padding)
                                   .value();
      results[i] = {call_.scratch.data() + i * scratch_.piece, type_, WithSamples(x, count)};
      RunGradInput(g, call_.inputs[source.w], dy, NumbersOf(results[i]), scratch, call_.pool);
    }
    if (pair_) {
      AddCpu::Run({{results.data(), 2}, {results.data(), 1}, call_.attributes, {}, call_.pool});
    }
    return ConstNumbersOf(results[0]);
  }

  const KernelCall& call_;
  bool pair_;
  SamplePieces pieces_;
  DType type_;
  GradientScratch scratch_;
};

void RunGradient(const KernelCall& call, bool pair, ConstNumbers other) {
  const GradientPieces pieces(call, pair);
  if (call.in_shape(2).elements() == 0) {
    std::fill_n(call.Out<float>(1), call.out_shape(1).elements(), 0.0F);
    std::fill_n(call.Out<float>(2), call.out_shape(2).elements(), 0.0F);
    return;
  }
  RunNormGradient({.rows = pieces.rows(),
                   .x = ConstNumbersOf(call.inputs[2]),
                   .gamma = call.In<float>(3),
                   .beta = call.In<float>(4),
                   .mean = call.In<float>(5),
                   .variance = call.In<float>(6),
                   .epsilon = call.attributes.Float("epsilon"),
                   .relu = call.attributes.Int("relu") != 0,
                   .other = other,
                   .dx = NumbersOf(call.outputs[0]),
                   .dgamma = call.Out<float>(1),
                   .dbeta = call.Out<float>(2)},
                  pieces.norm_scratch(), call.pool,
                  [&](const auto& visit) { pieces.ForEach(visit); });
}

}  // namespace

size_t NormConv2dGradInputCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchBytesOf(call, limits, /*pair=*/false);
}

void NormConv2dGradInputCpu::Run(const KernelCall& call) {
  const bool adds = call.inputs.size() > kOtherOfNormGradient;
  RunGradient(call, /*pair=*/false,
              adds ? ConstNumbersOf(call.inputs[kOtherOfNormGradient]) : ConstNumbers{});
}

size_t NormConv2dGradInputPairCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchBytesOf(call, limits, /*pair=*/true);
}

void NormConv2dGradInputPairCpu::Run(const KernelCall& call) {
  RunGradient(call, /*pair=*/true, {});
}

}  // namespace thimble
