#include "thimble/device/cpu/gemm/gemm.h"
#include "thimble/ops/linear/linear.h"

namespace thimble {
namespace {

size_t Size(int64_t size) { return static_cast<size_t>(size); }

size_t ScratchFor(const GemmShape& shape, const KernelLimits& limits) {
  return GemmScratchBytes(shape, Size(limits.threads), limits.scratch_bytes_per_thread);
}

// With R rows: y (R, N) = x (R, F) * w transposed (F, N).
GemmShape ForwardShape(const Shape& y, const Shape& w, DType type) {
  return {Size(LinearRows(y)), Size(w[0]), Size(w[1]), IsShortNumber(type)};
}
// dw (N, F) = dy transposed (N, R) * x (R, F).
GemmShape GradWeightShape(const Shape& dw, const Shape& dy, DType type) {
  return {Size(dw[0]), Size(dw[1]), Size(LinearRows(dy)), IsShortNumber(type)};
}
// dx (R, F) = dy (R, N) * w (N, F).
GemmShape GradInputShape(const Shape& w, const Shape& dy, DType type) {
  return {Size(LinearRows(dy)), Size(w[1]), Size(w[0]), IsShortNumber(type)};
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
  const bool biased = call.inputs.size() > 2;
  Gemm({shape, x, w, y, biased ? ConstNumbersOf(call.inputs[2]) : ConstNumbers{}}, call.scratch,
       call.pool);
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
