#include <algorithm>

#include "thimble/device/cuda/column_sums.h"
#include "thimble/device/cuda/product/matrix_product.h"
#include "thimble/ops/linear/linear.h"

namespace thimble {
namespace {

// With R rows of F features: y (R, N) = x (R, F) * w (N, F) transposed.
struct LinearSizes {
  int64_t rows, outputs, features;
};

std::string_view DeclinesSizes(const LinearSizes& sizes) {
  // Classifiers have few outputs; a tile of tensor cores would be mostly empty.
  constexpr int64_t kFewest = 12;
  if (sizes.outputs < kFewest) return "few outputs";
  const int64_t largest = std::max({sizes.rows, sizes.outputs, sizes.features});
  return FitsMatrixProduct(largest, largest, largest) ? "" : "a size is too large";
}

std::string_view DeclinesShort(const OpCall& call, const LinearSizes& sizes) {
  if (!IsShortNumber(call.input_type(0)) || call.input_type(0) != call.input_type(1)) {
    return "takes two factors of the same 16-bit type only";
  }
  return DeclinesSizes(sizes);
}

LinearSizes SizesOfForward(const Shape& w, const Shape& y) { return {LinearRows(y), w[0], w[1]}; }

LinearSizes SizesOfGradWeight(const Shape& dy, const Shape& dw) {
  return {LinearRows(dy), dw[0], dw[1]};
}

Math ShortMathOf(const KernelCall& call) {
  return call.inputs[0].dtype == DType::kF16 ? Math::kF16 : Math::kBF16;
}

void RunForward(const KernelCall& call, Math math) {
  const LinearSizes sizes = SizesOfForward(call.in_shape(1), call.out_shape(0));
  const bool biased = call.inputs.size() > 2;
  LaunchMatrixProduct(call.stream,
                      {.rows = sizes.rows,
                       .columns = sizes.outputs,
                       .inner = sizes.features,
                       .a = {ConstNumbersOf(call.inputs[0])},
                       .b = {ConstNumbersOf(call.inputs[1])},
                       .result = NumbersOf(call.outputs[0]),
                       .bias = biased ? ConstNumbersOf(call.inputs[2]) : ConstNumbers{}},
                      math);
}

// dw (N, F) = dy (R, N) transposed * x (R, F).
void RunGradWeight(const KernelCall& call, Math math) {
  const LinearSizes sizes = SizesOfGradWeight(call.in_shape(1), call.out_shape(0));
  LaunchMatrixProduct(call.stream,
                      {.rows = sizes.outputs,
                       .columns = sizes.features,
                       .inner = sizes.rows,
                       .a = {ConstNumbersOf(call.inputs[1]), /*lines_across=*/true},
                       .b = {ConstNumbersOf(call.inputs[0]), /*lines_across=*/true},
                       .result = NumbersOf(call.outputs[0])},
                      math);
}

// dx (R, F) = dy (R, N) * w (N, F).
void RunGradInput(const KernelCall& call, Math math) {
  const LinearSizes sizes = SizesOfForward(call.in_shape(0), call.in_shape(1));
  LaunchMatrixProduct(call.stream,
                      {.rows = sizes.rows,
                       .columns = sizes.features,
                       .inner = sizes.outputs,
                       .a = {ConstNumbersOf(call.inputs[1])},
                       .b = {ConstNumbersOf(call.inputs[0]), /*lines_across=*/true},
                       .result = NumbersOf(call.outputs[0])},
                      math);
}

}  // namespace

std::string_view LinearShortCuda::Declines(const OpCall& call) {
  return DeclinesShort(call, SizesOfForward(call.inputs[1], call.outputs[0]));
}
void LinearShortCuda::Run(const KernelCall& call) { RunForward(call, ShortMathOf(call)); }
std::string_view LinearTf32Cuda::Declines(const OpCall& call) {
  return DeclinesSizes(SizesOfForward(call.inputs[1], call.outputs[0]));
}
void LinearTf32Cuda::Run(const KernelCall& call) { RunForward(call, Math::kTf32); }
void LinearCuda::Run(const KernelCall& call) { RunForward(call, Math::kFp32); }

std::string_view LinearGradWeightShortCuda::Declines(const OpCall& call) {
  return DeclinesShort(call, SizesOfGradWeight(call.inputs[1], call.outputs[0]));
}
void LinearGradWeightShortCuda::Run(const KernelCall& call) {
  RunGradWeight(call, ShortMathOf(call));
}
std::string_view LinearGradWeightTf32Cuda::Declines(const OpCall& call) {
  return DeclinesSizes(SizesOfGradWeight(call.inputs[1], call.outputs[0]));
}
void LinearGradWeightTf32Cuda::Run(const KernelCall& call) { RunGradWeight(call, Math::kTf32); }
void LinearGradWeightCuda::Run(const KernelCall& call) { RunGradWeight(call, Math::kFp32); }

std::string_view LinearGradInputShortCuda::Declines(const OpCall& call) {
  return DeclinesShort(call, SizesOfForward(call.inputs[0], call.inputs[1]));
}
void LinearGradInputShortCuda::Run(const KernelCall& call) {
  RunGradInput(call, ShortMathOf(call));
}
std::string_view LinearGradInputTf32Cuda::Declines(const OpCall& call) {
  return DeclinesSizes(SizesOfForward(call.inputs[0], call.inputs[1]));
}
void LinearGradInputTf32Cuda::Run(const KernelCall& call) { RunGradInput(call, Math::kTf32); }
void LinearGradInputCuda::Run(const KernelCall& call) { RunGradInput(call, Math::kFp32); }

// db (N): the sums of the columns of dy (R, N).
void LinearGradBiasCuda::Run(const KernelCall& call) {
  const ColumnSums sums{ConstNumbersOf(call.inputs[0]), NumbersOf(call.outputs[0])};
  LaunchColumnSums(call.stream, LinearRows(call.in_shape(0)), call.out_shape(0)[0], {&sums, 1});
}

}  // namespace thimble
