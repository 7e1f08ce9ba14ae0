#include <algorithm>
#include <array>

#include "thimble/device/cpu/gemm/gemm.h"
#include "thimble/ops/linear/linear.h"

namespace thimble {
namespace {

size_t Size(int64_t size) { return static_cast<size_t>(size); }

size_t ScratchFor(const GemmShape& shape, const KernelLimits& limits) {
  return GemmScratchBytes(shape, Size(limits.threads), limits.scratch_bytes_per_thread);
}

// y (B, N) = x (B, F) * w transposed (F, N).
GemmShape ForwardShape(const Shape& y, const Shape& w, DType type) {
  return {Size(y[0]), Size(y[1]), Size(w[1]), IsShortNumber(type)};
}
// dw (N, F) = dy transposed (N, B) * x (B, F).
GemmShape GradWeightShape(const Shape& dw, const Shape& dy, DType type) {
  return {Size(dw[0]), Size(dw[1]), Size(dy[0]), IsShortNumber(type)};
}
// dx (B, F) = dy (B, N) * w (N, F).
GemmShape GradInputShape(const Shape& w, const Shape& dy, DType type) {
  return {Size(dy[0]), Size(w[1]), Size(w[0]), IsShortNumber(type)};
}

}  // namespace

size_t LinearCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(ForwardShape(call.outputs[0], call.inputs[1], call.output_type(0)), limits);
}

void LinearCpu::Run(const KernelCall& call) {
  const Numbers y = NumbersOf(call.outputs[0]);
  const GemmShape shape = ForwardShape(call.out_shape(0), call.in_shape(1), y.type);
  const PlainPacker x(ConstNumbersOf(call.inputs[0]), shape.depth);
  const TransposedPacker w(ConstNumbersOf(call.inputs[1]), shape.depth);
  Gemm({shape, x, w, y, ConstNumbersOf(call.inputs[2])}, call.scratch, call.pool);
}

size_t LinearGradWeightCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(GradWeightShape(call.outputs[0], call.inputs[1], call.output_type(0)), limits);
}

void LinearGradWeightCpu::Run(const KernelCall& call) {
  const Numbers dw = NumbersOf(call.outputs[0]);
  const GemmShape shape = GradWeightShape(call.out_shape(0), call.in_shape(1), dw.type);
  const PlainPacker x(ConstNumbersOf(call.inputs[0]), shape.columns);
  const TransposedPacker dy(ConstNumbersOf(call.inputs[1]), shape.rows);
  Gemm({shape, dy, x, dw}, call.scratch, call.pool);
}

void LinearGradBiasCpu::Run(const KernelCall& call) {
  constexpr size_t kColumns =
      64;  // per chunk: their sums fit into registers and the first-level cache
  const size_t rows = Size(call.in_shape(0)[0]);
  const size_t columns = Size(call.in_shape(0)[1]);
  const ConstNumbers dy = ConstNumbersOf(call.inputs[0]);  // (B, N)
  const Numbers db = NumbersOf(call.outputs[0]);           // (N)
  call.pool.Run((columns + kColumns - 1) / kColumns, [&](size_t chunk, size_t /*thread*/) {
    const size_t begin = chunk * kColumns;
    const size_t count = std::min(kColumns, columns - begin);
    // Batches of tokens have thousands of rows; a sum in double stays exact to the last bit of a
    // float.
    std::array<double, kColumns> sums{};
    alignas(64) std::array<float, kColumns> copy;
    for (size_t row = 0; row < rows; ++row) {
      const float* piece = ReadNumbers(dy + (row * columns + begin), count, copy.data());
      for (size_t j = 0; j < count; ++j) sums[j] += piece[j];
    }
    float* result = RoomForNumbers(db + begin, copy.data());
    for (size_t j = 0; j < count; ++j) result[j] = static_cast<float>(sums[j]);
    WriteNumbers(result, count, db + begin);
  });
}

size_t LinearGradInputCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(GradInputShape(call.inputs[0], call.inputs[1], call.output_type(0)), limits);
}

void LinearGradInputCpu::Run(const KernelCall& call) {
  const Numbers dx = NumbersOf(call.outputs[0]);
  const GemmShape shape = GradInputShape(call.in_shape(0), call.in_shape(1), dx.type);
  const PlainPacker dy(ConstNumbersOf(call.inputs[1]), shape.depth);
  const PlainPacker w(ConstNumbersOf(call.inputs[0]), shape.columns);
  Gemm({shape, dy, w, dx}, call.scratch, call.pool);
}

}  // namespace thimble
