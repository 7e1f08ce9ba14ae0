#include "tests/support/op_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/kernel_run.h"
#include "tests/support/op_inputs.h"
#include "tests/support/tolerance.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

using Outputs = std::vector<std::vector<std::byte>>;

// The exact results, and how far a float kernel may be from them.
struct Expected {
  std::vector<ReferenceTensor<double>> outputs;
  std::vector<std::vector<double>> tolerances;
};

// Every number moved by one float rounding to a random side.
std::vector<ReferenceTensor<double>> Nudge(std::vector<ReferenceTensor<double>> tensors,
                                           uint64_t seed, uint32_t stream) {
  for (ReferenceTensor<double>& tensor : tensors) {
    const auto signs = RandomSigns(seed, stream++, tensor.numbers.size());
    for (size_t i = 0; i < signs.size(); ++i) tensor.numbers[i] *= 1 + signs[i] * kFloatRounding;
  }
  return tensors;
}

Attributes Nudge(const Attributes& attributes, uint64_t seed, uint32_t stream) {
  Attributes nudged;
  for (const auto& [name, value] : attributes.entries()) {
    AttributeValue moved = value;
    if (auto* number = std::get_if<double>(&moved)) {
      *number *= 1 + RandomSigns(seed, stream++, 1)[0] * kFloatRounding;
    } else if (auto* numbers = std::get_if<std::vector<double>>(&moved)) {
      const auto signs = RandomSigns(seed, stream++, numbers->size());
      for (size_t i = 0; i < signs.size(); ++i) (*numbers)[i] *= 1 + signs[i] * kFloatRounding;
    }
    nudged.Set(name, moved);
  }
  return nudged;
}

Expected ComputeExpected(const PreparedCase& prepared,
                         std::vector<ReferenceTensor<double>> inputs) {
  constexpr uint32_t kDraws = 8;  // a spread that is ten times too small is a chance of 1 in 10^8
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
    for (size_t i = 0; i < squares[o].size(); ++i) {
      squares[o][i] =
          KernelTolerance(expected.outputs[o].numbers[i], std::sqrt(squares[o][i]) / kFloatRounding,
                          SumSize(prepared, o));
    }
  }
  expected.tolerances = std::move(squares);
  return expected;
}

bool IsClose(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  return actual == expected || std::abs(actual - expected) <= tolerance;
}

// A kernel that mixes many outputs on the way to one (rounding > 1) errs by the size of them all.
double Tolerance(const std::vector<double>& tolerances, size_t element, double rounding) {
  if (rounding == 1) return tolerances[element];
  return rounding * *std::max_element(tolerances.begin(), tolerances.end());
}

// The first difference is enough; `where` says which kernel, target and number of threads.
void ExpectClose(const PreparedCase& prepared, const Expected& expected, const Outputs& actual,
                 double rounding, const std::string& where) {
  for (size_t o = 0; o < actual.size(); ++o) {
    const std::string& port = prepared.op.outputs()[o].name;
    const auto& numbers = expected.outputs[o].numbers;
    for (size_t i = 0; i < numbers.size(); ++i) {
      float number = 0;
      std::memcpy(&number, actual[o].data() + i * sizeof(float), sizeof(float));
      const double tolerance = Tolerance(expected.tolerances[o], i, rounding);
      if (IsClose(number, numbers[i], tolerance)) continue;
      ADD_FAILURE() << fmt::format("{}: {}[{}] is {}, expected {} within {} ({})", where, port, i,
                                   number, numbers[i], tolerance, ToString(prepared.op_case));
      return;
    }
    const auto& integers = expected.outputs[o].integers;
    if (integers.empty()) continue;
    EXPECT_EQ(std::memcmp(actual[o].data(), integers.data(), actual[o].size()), 0)
        << where << ": integers of " << port << " differ, " << ToString(prepared.op_case);
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

// Each permission to reuse on its own, then as many as go together.
std::vector<KernelRunOptions> InPlaceRuns(const PreparedCase& prepared) {
  std::vector<KernelRunOptions> runs;
  KernelRunOptions together;
  std::vector<bool> taken(prepared.op_case.inputs.size(), false);
  for (size_t output = 0; output < prepared.outputs.size(); ++output) {
    bool placed = false;
    for (size_t input = 0; input < taken.size(); ++input) {
      if (!prepared.op.MayReuse(output, input)) continue;
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
                 const std::vector<ReferenceTensor<double>>& inputs, const Expected& expected) {
  const Outputs first = RunKernel(prepared, kernel, inputs, {});
  ExpectClose(prepared, expected, first, kernel.rounding, where);
  for (int threads : {2, 3}) {
    ExpectSameBits(prepared, first, RunKernel(prepared, kernel, inputs, {.threads = threads}),
                   fmt::format("{} with {} threads", where, threads));
  }
  const KernelRunOptions little_scratch{.threads = 2, .scratch_bytes_per_thread = size_t{1} << 15};
  ExpectSameBits(prepared, first, RunKernel(prepared, kernel, inputs, little_scratch),
                 where + " with little scratch");
  for (KernelRunOptions run : InPlaceRuns(prepared)) {
    for (int threads : {1, 3}) {
      run.threads = threads;
      ExpectSameBits(prepared, first, RunKernel(prepared, kernel, inputs, run),
                     fmt::format("{} in place with {} threads", where, threads));
    }
  }
}

}  // namespace

void CheckKernels(const OpCase& op_case) {
  const PreparedCase prepared(op_case);
  if (!prepared.valid()) return;
  const auto inputs = RandomInputs(prepared, 1.0);
  const Expected expected = ComputeExpected(prepared, inputs);
  for (const Kernel& kernel : prepared.op.kernels()) {
    if (kernel.device != DeviceKind::kCpu || !kernel.declines(prepared.call()).empty()) continue;
    // The reference has one target: the compiler's.
    const bool is_reference = &kernel == &prepared.op.kernels().back();
    const auto targets = is_reference ? std::vector<std::string>{"auto"} : SupportedSimdTargets();
    for (const std::string& target : targets) {
      ASSERT_TRUE(PinSimdTarget(target).ok());
      CheckKernel(prepared, kernel, fmt::format("{} on {}", kernel.name, target), inputs, expected);
    }
    ASSERT_TRUE(PinSimdTarget("auto").ok());
  }
}

}  // namespace thimble
