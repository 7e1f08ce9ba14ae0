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
GemmShape ForwardShape(const Shape& y, const Shape& w) {
  return {Size(y[0]), Size(y[1]), Size(w[1])};
}
// dw (N, F) = dy transposed (N, B) * x (B, F).
GemmShape GradWeightShape(const Shape& dw, const Shape& dy) {
  return {Size(dw[0]), Size(dw[1]), Size(dy[0])};
}
// dx (B, F) = dy (B, N) * w (N, F).
GemmShape GradInputShape(const Shape& w, const Shape& dy) {
  return {Size(dy[0]), Size(w[1]), Size(w[0])};
}

}  // namespace

size_t LinearCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(ForwardShape(call.outputs[0], call.inputs[1]), limits);
}

void LinearCpu::Run(const KernelCall& call) {
  const GemmShape shape = ForwardShape(call.out_shape(0), call.in_shape(1));
  const PlainPacker x(call.In<float>(0), shape.depth);
  const TransposedPacker w(call.In<float>(1), shape.depth);
  const float* b = call.In<float>(2);  // (N)
  float* y = call.Out<float>(0);       // (B, N)
  const DenseRows y_rows(y, shape.columns);
  Gemm({shape, x, w, y_rows}, call.scratch, call.pool);
  for (size_t row = 0; row < shape.rows; ++row, y += shape.columns) {
    for (size_t n = 0; n < shape.columns; ++n) y[n] += b[n];
  }
}

size_t LinearGradWeightCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(GradWeightShape(call.outputs[0], call.inputs[1]), limits);
}

void LinearGradWeightCpu::Run(const KernelCall& call) {
  const GemmShape shape = GradWeightShape(call.out_shape(0), call.in_shape(1));
  const PlainPacker x(call.In<float>(0), shape.columns);
  const TransposedPacker dy(call.In<float>(1), shape.rows);
  const DenseRows dw(call.Out<float>(0), shape.columns);
  Gemm({shape, dy, x, dw}, call.scratch, call.pool);
}

void LinearGradBiasCpu::Run(const KernelCall& call) {
  constexpr size_t kColumns =
      64;  // per chunk: their sums fit into registers and the first-level cache
  const size_t rows = Size(call.in_shape(0)[0]);
  const size_t columns = Size(call.in_shape(0)[1]);
  const float* dy = call.In<float>(0);  // (B, N)
  float* db = call.Out<float>(0);       // (N)
  call.pool.Run((columns + kColumns - 1) / kColumns, [&](size_t chunk, size_t /*thread*/) {
    const size_t begin = chunk * kColumns;
    const size_t count = std::min(kColumns, columns - begin);
    // Batches of tokens have thousands of rows; a sum in double stays exact to the last bit of a
    // float.
    std::array<double, kColumns> sums{};
    for (size_t row = 0; row < rows; ++row) {
      for (size_t j = 0; j < count; ++j) sums[j] += dy[row * columns + begin + j];
    }
    for (size_t j = 0; j < count; ++j) db[begin + j] = static_cast<float>(sums[j]);
  });
}

size_t LinearGradInputCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return ScratchFor(GradInputShape(call.inputs[0], call.inputs[1]), limits);
}

void LinearGradInputCpu::Run(const KernelCall& call) {
  const GemmShape shape = GradInputShape(call.in_shape(0), call.in_shape(1));
  const PlainPacker dy(call.In<float>(1), shape.depth);
  const PlainPacker w(call.In<float>(0), shape.columns);
  const DenseRows dx(call.Out<float>(0), shape.columns);
  Gemm({shape, dy, w, dx}, call.scratch, call.pool);
}

}  // namespace thimble
