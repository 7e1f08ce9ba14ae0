#include "tests/support/op_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/case_sample.h"
#include "tests/support/emulated_tiles.h"
#include "tests/support/kernel_run.h"
#include "tests/support/op_inputs.h"
#include "tests/support/tolerance.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

using Outputs = std::vector<std::vector<std::byte>>;

// The exact results, and the tolerances for a float kernel.
struct Expected {
  std::vector<ReferenceTensor<double>> outputs;
  std::vector<std::vector<double>> tolerances;
};

// Changes every number by about one float rounding, with random sign. (With exactly one, two terms
// that cancel would not change half of the time.)
std::vector<ReferenceTensor<double>> Nudge(std::vector<ReferenceTensor<double>> tensors,
                                           uint64_t seed, uint32_t stream) {
  for (ReferenceTensor<double>& tensor : tensors) {
    const auto moves = RandomUniforms(seed, stream++, tensor.numbers.size());
    for (size_t i = 0; i < moves.size(); ++i) tensor.numbers[i] *= 1 + moves[i] * kFloatRounding;
  }
  return tensors;
}

Attributes Nudge(const Attributes& attributes, uint64_t seed, uint32_t stream) {
  Attributes nudged;
  for (const auto& [name, value] : attributes.entries()) {
    AttributeValue moved = value;
    if (auto* number = std::get_if<double>(&moved)) {
      *number *= 1 + RandomUniforms(seed, stream++, 1)[0] * kFloatRounding;
    } else if (auto* numbers = std::get_if<std::vector<double>>(&moved)) {
      const auto moves = RandomUniforms(seed, stream++, numbers->size());
      for (size_t i = 0; i < moves.size(); ++i) (*numbers)[i] *= 1 + moves[i] * kFloatRounding;
    }
    nudged.Set(name, moved);
  }
  return nudged;
}

Expected ComputeExpected(const PreparedCase& prepared,
                         std::vector<ReferenceTensor<double>> inputs) {
  constexpr uint32_t kDraws = 8;  // the spread is ten times too small once in 10^8
  Expected expected{RunReferenceOp<double>(prepared.op, prepared.call(), inputs), {}};
  std::vector<std::vector<double>> squares;
  for (const auto& output : expected.outputs) squares.emplace_back(output.numbers.size(), 0.0);
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    const uint32_t stream = 100 * (draw + 1);
    auto nudged = Nudge(inputs, prepared.op_case.seed, stream);
    const Attributes attributes = Nudge(prepared.attributes, prepared.op_case.seed, stream + 50);
    const auto moved = RunReferenceOp<double>(
        prepared.op, {prepared.op_case.inputs, prepared.outputs, attributes}, nudged);
    for (size_t o = 0; o < moved.size(); ++o) {
      for (size_t i = 0; i < squares[o].size(); ++i) {
        const double distance = moved[o].numbers[i] - expected.outputs[o].numbers[i];
        squares[o][i] += distance * distance / kDraws;
      }
    }
  }
  for (size_t o = 0; o < squares.size(); ++o) {
    const double sum_size = SumSize(prepared, o);
    for (size_t i = 0; i < squares[o].size(); ++i) {
      squares[o][i] = KernelTolerance(
          expected.outputs[o].numbers[i],
          std::sqrt(squares[o][i]) / kFloatRounding + prepared.op_case.cancelled_size, sum_size);
    }
  }
  expected.tolerances = std::move(squares);
  return expected;
}

bool IsClose(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  return actual == expected || std::abs(actual - expected) <= tolerance;
}

// The tolerance of each element, scaled by the kernel's own rounding. A kernel that mixes outputs
// on the way to each has errors of the size of the largest.
std::vector<double> TolerancesOf(const Kernel& kernel, std::vector<double> tolerances) {
  if (kernel.mixes_outputs && !tolerances.empty()) {
    const double largest = *std::max_element(tolerances.begin(), tolerances.end());
    std::fill(tolerances.begin(), tolerances.end(), largest);
  }
  for (double& tolerance : tolerances) tolerance *= kernel.rounding;
  return tolerances;
}

template <class T>
T ElementAt(const std::vector<std::byte>& bytes, size_t index) {
  T element;
  std::memcpy(&element, bytes.data() + index * sizeof(T), sizeof(T));
  return element;
}

float NumberAt(const std::vector<std::byte>& bytes, DType type, size_t index) {
  if (type == DType::kF16) return ToFloat(ElementAt<F16>(bytes, index));
  return type == DType::kBF16 ? ToFloat(ElementAt<BF16>(bytes, index))
                              : ElementAt<float>(bytes, index);
}

// Reports only the first difference.
void ExpectCloseNumbers(const std::vector<double>& expected, const std::vector<double>& tolerances,
                        const std::vector<std::byte>& actual, DType type, double roundings,
                        const std::string& where) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float number = NumberAt(actual, type, i);
    const double tolerance =
        tolerances[i] + roundings * StorageTolerance(std::abs(expected[i]) + tolerances[i], type);
    if (IsClose(number, expected[i], tolerance)) continue;
    ADD_FAILURE() << fmt::format("{}, element {} is {}, expected {} within {}", where, i, number,
                                 expected[i], tolerance);
    return;
  }
}

template <class Integer>
void ExpectEqualIntegers(const std::vector<Integer>& expected, const std::vector<std::byte>& actual,
                         const std::string& where) {
  if (expected.empty()) return;
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size()), 0)
      << where << ": integers differ";
}

// Rounding at random is wrong by at most one unit, to the nearest by half of one.
double RoundingsOf(const PreparedCase& prepared) {
  const AttributeValue* stochastic = prepared.attributes.Find("stochastic");
  return stochastic != nullptr && std::get<int64_t>(*stochastic) != 0 ? 2 : 1;
}

// `where` names the kernel, target and number of threads.
void ExpectClose(const PreparedCase& prepared, const Kernel& kernel, const Expected& expected,
                 const Outputs& actual, const std::string& where) {
  for (size_t o = 0; o < actual.size(); ++o) {
    const std::string port = fmt::format("{}: {} of {}", where, prepared.op.outputs()[o].name,
                                         ToString(prepared.op_case));
    const ReferenceTensor<double>& exact = expected.outputs[o];
    ExpectCloseNumbers(exact.numbers, TolerancesOf(kernel, expected.tolerances[o]), actual[o],
                       prepared.output_types[o], RoundingsOf(prepared), port);
    ExpectEqualIntegers(exact.integers, actual[o], port);
    ExpectEqualIntegers(exact.bytes, actual[o], port);
  }
}

void ExpectSameBits(const PreparedCase& prepared, const Outputs& first, const Outputs& other,
                    const std::string& what) {
  for (size_t o = 0; o < first.size(); ++o) {
    EXPECT_TRUE(first[o] == other[o])
        << what << " changes the bits of " << prepared.op.outputs()[o].name << ", "
        << ToString(prepared.op_case);
  }
}

// Each permission to reuse an input alone, then as many as possible together.
std::vector<KernelRunOptions> InPlaceRuns(const PreparedCase& prepared) {
  std::vector<KernelRunOptions> runs;
  KernelRunOptions together;
  std::vector<bool> taken(prepared.op_case.inputs.size(), false);
  for (size_t output = 0; output < prepared.outputs.size(); ++output) {
    bool placed = false;
    for (size_t input = 0; input < taken.size(); ++input) {
      if (!prepared.op.MayReuse(output, input)) continue;
      if (prepared.output_types[output] != prepared.input_types[input]) continue;
      runs.push_back({.in_place = {{output, input}}});
      if (placed || taken[input]) continue;
      together.in_place.emplace_back(output, input);
      placed = taken[input] = true;
    }
  }
  if (together.in_place.size() > 1) runs.push_back(together);
  return runs;
}

void CheckKernel(const PreparedCase& prepared, const Kernel& kernel, const std::string& where,
                 const std::vector<KernelLimits>& limits,
                 const std::vector<ReferenceTensor<double>>& inputs, const Expected& expected) {
  const auto run_with = [&](KernelRunOptions run, const KernelLimits& limit) {
    run.threads = limit.threads;
    run.scratch_bytes_per_thread = limit.scratch_bytes_per_thread;
    return RunKernel(prepared, kernel, inputs, run);
  };
  const auto with = [&](const KernelLimits& limit) {
    return fmt::format("with {} threads and {} bytes of scratch each", limit.threads,
                       limit.scratch_bytes_per_thread);
  };
  const Outputs first = run_with({}, limits.front());
  ExpectClose(prepared, kernel, expected, first, where);
  for (size_t i = 1; i < limits.size(); ++i) {
    ExpectSameBits(prepared, first, run_with({}, limits[i]),
                   fmt::format("{} {}", where, with(limits[i])));
  }
  for (const KernelRunOptions& run : InPlaceRuns(prepared)) {
    for (const KernelLimits* limit : {&limits.front(), &limits.back()}) {
      ExpectSameBits(prepared, first, run_with(run, *limit),
                     fmt::format("{} in place {}", where, with(*limit)));
    }
  }
}

void CheckCudaKernel(const PreparedCase& prepared, const Kernel& kernel,
                     const std::vector<ReferenceTensor<double>>& inputs, const Expected& expected) {
  const std::string where(kernel.name);
  const Outputs first = RunKernel(prepared, kernel, inputs, {});
  ExpectClose(prepared, kernel, expected, first, where);
  ExpectSameBits(prepared, first,
                 RunKernel(prepared, kernel, inputs, {.launch = CudaLaunch::kGraph}),
                 where + " recorded as a graph");
  for (const KernelRunOptions& run : InPlaceRuns(prepared)) {
    ExpectSameBits(prepared, first, RunKernel(prepared, kernel, inputs, run), where + " in place");
  }
}

std::vector<const Kernel*> KernelsOn(DeviceKind device, const PreparedCase& prepared) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : prepared.op.kernels()) {
    const bool takes_it = kernel.device == device && kernel.declines(prepared.call()).empty();
    if (takes_it) kernels.push_back(&kernel);
  }
  return kernels;
}

// Different types for the ports of one call; another mix for each seed and shape.
std::vector<DType> MixedTypes(const OpCase& op_case) {
  constexpr auto kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;
  const std::vector<DType> mixes[] = {
      {kF16, kF32},              // such as gradients in f32
      {kF32, kBF16},             // such as weights in f32
      {kBF16, kF16},             // types of the same size
      {kF16, kF16, kBF16},       // only the third differs
      {kBF16, kF32, kF16},       // all three types
      {kF16, kF16, kF16, kF32},  // such as logits in f32
  };
  uint64_t choice = op_case.seed;
  for (const Shape& shape : op_case.inputs) choice += static_cast<uint64_t>(shape.elements());
  return mixes[choice % std::size(mixes)];
}

// Calls check(case) with the case itself or, if it does not say how numbers are stored, for each
// type in turn and a mix of them.
template <class Check>
void ForEachStorage(OpCase op_case, const Check& check) {
  const bool chosen = !op_case.number_types.empty();
  const std::vector<DType> mixed = MixedTypes(op_case);
  check(op_case);
  for (const auto& types : {std::vector{DType::kF16}, std::vector{DType::kBF16}, mixed}) {
    if (chosen) return;
    op_case.number_types = types;
    check(op_case);
  }
}

bool HasBrainFloats(const PreparedCase& prepared) {
  const auto& types = prepared.input_types;
  return std::find(types.begin(), types.end(), DType::kBF16) != types.end();
}

void CheckCpuKernels(const OpCase& op_case, const std::vector<KernelLimits>& limits,
                     CheckedKernels& checked) {
  const PreparedCase prepared(op_case);
  const auto kernels = KernelsOn(DeviceKind::kCpu, prepared);
  if (!prepared.valid() || kernels.empty()) return;
  const auto inputs = RandomInputs(prepared, 1.0);
  const Expected expected = ComputeExpected(prepared, inputs);
  for (const Kernel* kernel : kernels) {
    checked.push_back(kernel->name);
    if (kernel == &prepared.op.kernels().back()) {
      CheckKernel(prepared, *kernel, "reference", {limits.front()}, inputs, expected);
      continue;
    }
    const EmulatedTiles tiles;
    for (const std::string& target : SupportedSimdTargets()) {
      THIMBLE_CHECK(PinSimdTarget(target).ok(), "{} cannot be pinned", target);
      // Such targets otherwise run the code of the next one.
      if (MultipliesPairs() && !HasBrainFloats(prepared)) continue;
      if (MultipliesTiles() && !op_case.op.starts_with("conv2d")) continue;
      CheckKernel(prepared, *kernel, fmt::format("{} on {}", kernel->name, target), limits, inputs,
                  expected);
    }
  }
}

void CheckCudaKernels(const OpCase& op_case, CheckedKernels& checked) {
  if (!NextCaseRuns()) return;
  const PreparedCase prepared(op_case);
  const auto kernels = KernelsOn(DeviceKind::kCuda, prepared);
  if (!prepared.valid() || kernels.empty()) return;
  const auto inputs = RandomInputs(prepared, 1.0);
  const Expected expected = ComputeExpected(prepared, inputs);
  for (const Kernel* kernel : kernels) {
    CheckCudaKernel(prepared, *kernel, inputs, expected);
    checked.push_back(kernel->name);
  }
}

}  // namespace

CheckedKernels CheckKernels(const OpCase& op_case, const std::vector<KernelLimits>& limits) {
  CheckedKernels checked;
  ForEachStorage(op_case, [&](const OpCase& c) {
    // A mix differs only in how numbers are loaded and stored.
    const bool is_mixed = c.number_types.size() > 1;
    CheckCpuKernels(c, is_mixed ? std::vector{limits.front()} : limits, checked);
  });
  return checked;
}

CheckedKernels CheckCudaKernels(const OpCase& op_case) {
  CheckedKernels checked;
  ForEachStorage(op_case, [&](const OpCase& c) { CheckCudaKernels(c, checked); });
  return checked;
}

}  // namespace thimble
