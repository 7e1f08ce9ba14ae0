// Sums of squares are made by column, for groups of rows, and by row, a warp each; then the
// elements are updated. All of it depends on the shape alone.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/adam_update/adam_factored.h"
#include "thimble/ops/update_numbers.cuh"
#include "thimble/ops/update_rounding.h"

namespace thimble {
namespace {

constexpr int kMeanThreads = 256;
constexpr int kMeanWarps = kMeanThreads / kWarpLanes;
constexpr int kRootThreads = 1024;

// The numbers on the device that say what an update does.
struct FactoredNumbers {
  const float* rate = nullptr;    // null: no weights change
  const int32_t* seen = nullptr;  // null: the gradients are whole
  const int32_t* update = nullptr;
  const float* factor = nullptr;  // null: 1

  __device__ float Factor() const { return factor == nullptr ? 1.0F : *factor; }
  __device__ bool IsFirst() const { return seen == nullptr || *seen == 0; }
  // Nothing changes. (The first part also fades the moments.)
  __device__ bool Skips() const { return Factor() == 0 && (seen == nullptr || !IsFirst()); }
};

struct MatrixMeans {
  InNumbers<AnyNumber> gradient;  // (rows, columns)
  int rows, columns;
  int groups;  // of rows
  const float* row_means;
  const float* column_means;
  float* next_row_means;
  float* next_column_means;
  float* group_sums;  // (groups, columns)
  float beta2, new_share;
  FactoredNumbers numbers;

  __device__ float Next(float old, float mean) const {
    if (numbers.Skips()) return old;
    return fmaf(numbers.IsFirst() ? beta2 : 1.0F, old, new_share * mean);
  }
};

// Blocks: x over columns, y over groups of rows.
__global__ void __launch_bounds__(kMeanThreads) FactoredSquaresKernel(MatrixMeans means) {
  WaitForKernelsBefore();
  const int column = static_cast<int>(blockIdx.x) * kMeanThreads + static_cast<int>(threadIdx.x);
  if (column >= means.columns) return;
  const auto group = static_cast<int64_t>(blockIdx.y);
  const float factor = means.numbers.Factor();
  const auto end = static_cast<int>((group + 1) * means.rows / means.groups);
  float sum = 0;
  if (factor != 0) {
#pragma unroll 4
    for (auto row = static_cast<int>(group * means.rows / means.groups); row < end; ++row) {
      const float g = factor * LoadNumber(means.gradient + (int64_t{row} * means.columns + column));
      sum = fmaf(g, g, sum);
    }
  }
  means.group_sums[group * means.columns + column] = sum;
}

// The first blocks have a warp for each row, the others a thread for each column.
__global__ void __launch_bounds__(kMeanThreads)
    FactoredMeansKernel(MatrixMeans means, int row_blocks) {
  WaitForKernelsBefore();
  const float factor = means.numbers.Factor();
  const auto block = static_cast<int>(blockIdx.x);
  if (block < row_blocks) {
    const int row = block * kMeanWarps + static_cast<int>(threadIdx.x) / kWarpLanes;
    if (row >= means.rows) return;
    const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
    float sum = 0;
    if (factor != 0) {
#pragma unroll 4
      for (int column = lane; column < means.columns; column += kWarpLanes) {
        const float g =
            factor * LoadNumber(means.gradient + (int64_t{row} * means.columns + column));
        sum = fmaf(g, g, sum);
      }
    }
    sum = WarpSum(sum);
    if (lane != 0) return;
    means.next_row_means[row] =
        means.Next(means.row_means[row], sum / static_cast<float>(means.columns));
    return;
  }
  const int column = (block - row_blocks) * kMeanThreads + static_cast<int>(threadIdx.x);
  if (column >= means.columns) return;
  float sum = 0;
  for (int group = 0; group < means.groups; ++group) {
    sum += means.group_sums[int64_t{group} * means.columns + column];
  }
  means.next_column_means[column] =
      means.Next(means.column_means[column], sum / static_cast<float>(means.rows));
}

// Roots of the factors of the second moment; one block.
__global__ void __launch_bounds__(kRootThreads)
    FactoredRootsKernel(const float* row_means, int rows, const float* column_means, int columns,
                        float* row_roots, float* column_roots) {
  __shared__ double sums[kRootThreads / kWarpLanes];
  WaitForKernelsBefore();
  const auto thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (int row = thread; row < rows; row += kRootThreads) {
    sum += double{row_means[row]};
    row_roots[row] = sqrtf(row_means[row]);
  }
  sum = WarpSum(sum);
  if (thread % kWarpLanes == 0) sums[thread / kWarpLanes] = sum;
  __syncthreads();
  sum = 0;
  for (const double of_warp : sums) sum += of_warp;
  const auto mean = static_cast<float>(sum / rows);
  for (int column = thread; column < columns; column += kRootThreads) {
    column_roots[column] = mean == 0 ? 0.0F : sqrtf(column_means[column] / mean);
  }
}

// An array that is read, and what it becomes. Null: the op does not have it.
struct FactoredArray {
  DType type = DType::kF32;
  const void* in = nullptr;
  DType next_type = DType::kF32;
  void* next = nullptr;
  int output = 0;  // its place among the op's outputs
};

struct FactoredElements {
  FactoredArray weight, moment;
  DType gradient_type = DType::kF32;
  const void* gradient = nullptr;
  int count = 0, columns = 0;
  const float* row_roots = nullptr;
  const float* column_roots = nullptr;
  FactoredNumbers numbers;
  AdamSpec spec = {};
  bool stochastic = false;
  std::array<uint32_t, 2> key = {};
  uint32_t stream = 0;
};

struct FactoredNow {
  float kept, new_share, rate, root_scale, epsilon, decay, factor;
};

__device__ FactoredNow FactoredNowOf(const FactoredElements& e) {
  const AdamFactors factors(e.spec, e.numbers.rate == nullptr ? 0.0F : *e.numbers.rate,
                            *e.numbers.update);
  return {e.numbers.IsFirst() ? static_cast<float>(factors.beta1) : 1.0F,
          static_cast<float>(factors.new_share1),
          static_cast<float>(factors.rate),
          static_cast<float>(factors.root_scale),
          static_cast<float>(factors.epsilon),
          static_cast<float>(factors.decay),
          e.numbers.Factor()};
}

// Four neighbouring elements from i on, of which `count` exist. All threads of a block call it.
__device__ void UpdateFactoredFour(const FactoredElements& e, const FactoredNow& now,
                                   const FourRounding& rounding, int i, int count) {
  FourNumbers moment = LoadFourNumbers(e.moment.type, e.moment.in, i, count);
  if (e.gradient != nullptr) {
    const FourNumbers gradient = LoadFourNumbers(e.gradient_type, e.gradient, i, count);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float scaled = now.factor == 0 ? 0.0F : now.factor * gradient.numbers[k];
      moment.numbers[k] = fmaf(now.kept, moment.numbers[k], now.new_share * scaled);
    }
    StoreFourNumbers(e.moment.next_type, moment, rounding, e.moment.output, e.moment.next, i,
                     count);
  }
  if (e.weight.in == nullptr) return;
  FourNumbers weight = LoadFourNumbers(e.weight.type, e.weight.in, i, count);
  int row = i / e.columns;
  int column = i % e.columns;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k >= count) break;
    const float root = e.row_roots[row] * e.column_roots[column];
    const float step = now.rate * moment.numbers[k] / fmaf(root, now.root_scale, now.epsilon);
    weight.numbers[k] -= fmaf(now.decay, weight.numbers[k], step);
    if (++column == e.columns) {
      column = 0;
      ++row;
    }
  }
  StoreFourNumbers(e.weight.next_type, weight, rounding, e.weight.output, e.weight.next, i, count);
}

__device__ void CopyFactoredFour(const FactoredArray& array, int i, int count) {
  if (array.next == nullptr) return;
  CopyFourNumbers(array.type, array.in, array.next_type, array.next, i, count);
}

__global__ void __launch_bounds__(kUpdateThreads)
    FactoredElementsKernel(const __grid_constant__ FactoredElements e) {
  __shared__ FactoredNow shared_now;
  WaitForKernelsBefore();
  if (threadIdx.x == 0) shared_now = FactoredNowOf(e);
  __syncthreads();
  const FactoredNow now = shared_now;
  const bool skips = e.numbers.Skips();
  const uint32_t occasion =
      e.numbers.seen == nullptr ? 0 : static_cast<uint32_t>(*e.numbers.seen) + 1;
  const RoundingDraw draw{
      .tensor = e.stream, .update = static_cast<uint32_t>(*e.numbers.update), .occasion = occasion};
#pragma unroll 1
  for (int pass = 0; pass < kUpdatePasses; ++pass) {
    const int i = static_cast<int>(blockIdx.x) * kUpdateBlockElements +
                  4 * (pass * kUpdateThreads + static_cast<int>(threadIdx.x));
    const int count = max(0, min(4, e.count - i));
    if (skips) {
      CopyFactoredFour(e.weight, i, count);
      CopyFactoredFour(e.moment, i, count);
      continue;
    }
    FourRounding rounding{.stochastic = e.stochastic};
    if (e.stochastic) {
      rounding.words = Philox4x32(e.key, draw.Counter(static_cast<uint32_t>(i) / 4));
    }
    UpdateFactoredFour(e, now, rounding, i, count);
  }
}

// ---- On the host

// More than on a CPU, so that there are enough blocks.
int FactoredGroups(const AdamMatrix& matrix) {
  constexpr int64_t kMostGroups = 64;
  return static_cast<int>(std::min(matrix.rows, kMostGroups));
}
size_t FactoredGroupFloats(const AdamMatrix& matrix) {
  return static_cast<size_t>(FactoredGroups(matrix) * matrix.columns);
}
size_t FactoredRootFloats(const AdamMatrix& matrix) {
  return static_cast<size_t>(matrix.rows + matrix.columns);
}

// Elements are counted in 32 bits, also beyond the end.
std::string_view DeclinesLarge(const OpCall& call) {
  constexpr int64_t kMostElements = int64_t{1} << 30;
  return call.inputs[0].elements() <= kMostElements ? "" : "too many elements";
}

unsigned Blocks(int64_t count, int of_block) {
  return static_cast<unsigned>((count + of_block - 1) / of_block);
}

// What the kernels of the three ops have in common.
class FactoredLauncher {
 public:
  FactoredLauncher(const KernelCall& call, const AdamFactoredInputs& where)
      : call_(call), where_(where), matrix_(call.in_shape(0)) {
    const AdamInputs& inputs = where.inputs;
    if (inputs.rate != kNoAdamInput) elements_.numbers.rate = call.In<float>(inputs.rate);
    if (inputs.seen != kNoAdamInput) elements_.numbers.seen = call.In<int32_t>(inputs.seen);
    elements_.numbers.update = call.In<int32_t>(inputs.update);
    if (call.inputs.size() > inputs.factor) {
      elements_.numbers.factor = call.In<float>(inputs.factor);
    }
    elements_.spec = AdamSpecOf(call.attributes, inputs);
    elements_.count = static_cast<int>(call.in_shape(0).elements());
    elements_.columns = static_cast<int>(matrix_.columns);
    if (!RoundsAtRandom(call.attributes)) return;
    const RoundingDraw draw = DrawOf(call.attributes);
    elements_.stochastic = true;
    elements_.key = draw.source.key();
    elements_.stream = draw.tensor;
  }

  bool empty() const { return elements_.count == 0; }

  void AddMeans(size_t gradient, size_t next) {
    const auto spec = AdamFactors(elements_.spec, 0, 0);
    const MatrixMeans means{ConstNumbersOf(call_.inputs[gradient]),
                            static_cast<int>(matrix_.rows),
                            static_cast<int>(matrix_.columns),
                            FactoredGroups(matrix_),
                            call_.In<float>(where_.rows),
                            call_.In<float>(where_.columns),
                            call_.Out<float>(next),
                            call_.Out<float>(next + 1),
                            scratch(),
                            static_cast<float>(spec.beta2),
                            static_cast<float>(spec.new_share2),
                            elements_.numbers};
    const unsigned columns = Blocks(matrix_.columns, kMeanThreads);
    FactoredSquaresKernel<<<dim3(columns, static_cast<unsigned>(means.groups)), kMeanThreads, 0,
                            call_.stream>>>(means);
    THIMBLE_CUDA_LAUNCHED();
    const unsigned rows = Blocks(matrix_.rows, kMeanWarps);
    FactoredMeansKernel<<<rows + columns, kMeanThreads, 0, call_.stream>>>(means,
                                                                           static_cast<int>(rows));
    THIMBLE_CUDA_LAUNCHED();
    elements_.gradient_type = call_.inputs[gradient].dtype;
    elements_.gradient = call_.inputs[gradient].data;
  }

  void SetRoots(const float* rows, const float* columns, size_t first_float) {
    float* row_roots = scratch() + first_float;
    float* column_roots = row_roots + matrix_.rows;
    FactoredRootsKernel<<<1, kRootThreads, 0, call_.stream>>>(
        rows, static_cast<int>(matrix_.rows), columns, static_cast<int>(matrix_.columns), row_roots,
        column_roots);
    THIMBLE_CUDA_LAUNCHED();
    elements_.row_roots = row_roots;
    elements_.column_roots = column_roots;
  }

  void SetWeight(size_t input, size_t output) { elements_.weight = Array(input, &output); }
  void SetMoment(size_t input, const size_t* output) { elements_.moment = Array(input, output); }

  void Update() const {
    FactoredElementsKernel<<<Blocks(elements_.count, kUpdateBlockElements), kUpdateThreads, 0,
                             call_.stream>>>(elements_);
    THIMBLE_CUDA_LAUNCHED();
  }

 private:
  float* scratch() const {
    return reinterpret_cast<float*>(call_.scratch.data());  // NOLINT: raw storage
  }
  FactoredArray Array(size_t input, const size_t* output) const {
    FactoredArray array{.type = call_.inputs[input].dtype, .in = call_.inputs[input].data};
    if (output == nullptr) return array;
    array.next_type = call_.outputs[*output].dtype;
    array.next = call_.outputs[*output].data;
    array.output = static_cast<int>(*output);
    return array;
  }

  const KernelCall& call_;
  const AdamFactoredInputs& where_;
  AdamMatrix matrix_;
  FactoredElements elements_;
};

}  // namespace

std::string_view AdamFactoredUpdateCuda::Declines(const OpCall& call) {
  return DeclinesLarge(call);
}
size_t AdamFactoredUpdateCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const AdamMatrix matrix(call.inputs[0]);
  return (FactoredGroupFloats(matrix) + FactoredRootFloats(matrix)) * sizeof(float);
}
void AdamFactoredUpdateCuda::Run(const KernelCall& call) {
  FactoredLauncher launcher(call, kFactoredUpdateInputs);
  if (launcher.empty()) return;
  launcher.AddMeans(1, 2);
  launcher.SetRoots(call.Out<float>(2), call.Out<float>(3),
                    FactoredGroupFloats(AdamMatrix(call.in_shape(0))));
  launcher.SetWeight(0, 0);
  const size_t moment = 1;
  launcher.SetMoment(2, &moment);
  launcher.Update();
}

std::string_view AdamFactoredGatherCuda::Declines(const OpCall& call) {
  return DeclinesLarge(call);
}
size_t AdamFactoredGatherCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return FactoredGroupFloats(AdamMatrix(call.inputs[0])) * sizeof(float);
}
void AdamFactoredGatherCuda::Run(const KernelCall& call) {
  FactoredLauncher launcher(call, kFactoredGatherInputs);
  if (launcher.empty()) return;
  launcher.AddMeans(0, 1);
  const size_t moment = 0;
  launcher.SetMoment(1, &moment);
  launcher.Update();
}

std::string_view AdamFactoredApplyCuda::Declines(const OpCall& call) { return DeclinesLarge(call); }
size_t AdamFactoredApplyCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return FactoredRootFloats(AdamMatrix(call.inputs[0])) * sizeof(float);
}
void AdamFactoredApplyCuda::Run(const KernelCall& call) {
  FactoredLauncher launcher(call, kFactoredApplyInputs);
  if (launcher.empty()) return;
  launcher.SetRoots(call.In<float>(2), call.In<float>(3), 0);
  launcher.SetWeight(0, 0);
  launcher.SetMoment(1, nullptr);
  launcher.Update();
}

}  // namespace thimble
