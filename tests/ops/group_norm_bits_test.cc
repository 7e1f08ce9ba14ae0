// Bit-exact properties of group norm, on every SIMD target and on a GPU: its output can be
// recomputed from its statistics, no sample depends on another one, and with ReLU it gives the same
// as the two ops one after the other, forward and backward.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/ops/group_norm_cases.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

using Floats = std::vector<float>;

// Runs an op with one of its kernels.
using Runner =
    std::function<std::vector<OpData>(const OpCase& op_case, const std::vector<OpData>& data)>;

bool HaveSameBits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Calls body for the vector kernels on every target and for the references.
void ForEachCpuKernel(const std::function<void(const Runner&)>& body) {
  const auto run_kernel = [](size_t kernel) -> Runner {
    return [kernel](const OpCase& op_case, const std::vector<OpData>& data) {
      return RunOp(op_case, data, kernel);
    };
  };
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    SCOPED_TRACE(target);
    body(run_kernel(0));
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
  SCOPED_TRACE("reference");
  body(run_kernel(1));
}

// The second row of all ops here.
std::vector<OpData> RunOnGpu(const OpCase& op_case, const std::vector<OpData>& data) {
  return RunAllKernels(op_case, data).at(1);
}

// Random inputs of a call.
std::vector<OpData> Draw(const OpCase& op_case) {
  const PreparedCase prepared(op_case);
  std::vector<OpData> data;
  for (const auto& input : RandomInputs(prepared, 1.0)) {
    data.push_back({{input.numbers.begin(), input.numbers.end()}, {}});
  }
  return data;
}

void ExpectItsStatisticsSuffice(const Runner& run) {
  for (const auto& [x, groups] : kGroupedShapes) {
    const OpCase norm_case = WithRelu(GroupNormCase(x, groups));
    SCOPED_TRACE(ToString(norm_case));
    auto data = Draw(norm_case);
    for (float& number : data[0].floats) number += 1e3F;  // means that no float is close to
    const auto norm = run(norm_case, data);
    const auto again =
        run(WithRelu(GroupNormApplyCase(x, groups)), {data[0], data[1], data[2], norm[1], norm[2]});
    EXPECT_TRUE(HaveSameBits(again[0].floats, norm[0].floats));
  }
}

bool IsParameter(size_t input) { return input == 1 || input == 2; }

// Samples [begin, end) of all arrays (B, ...).
std::vector<OpData> PartOf(const OpCase& op_case, const std::vector<OpData>& data, int64_t begin,
                           int64_t end) {
  std::vector<OpData> part = data;
  for (size_t i = 0; i < data.size(); ++i) {
    if (IsParameter(i)) continue;
    const Floats& all = data[i].floats;
    const auto size = static_cast<int64_t>(all.size()) / op_case.inputs[0][0];
    part[i].floats.assign(all.begin() + begin * size, all.begin() + end * size);
  }
  return part;
}

OpCase CaseOfPart(OpCase op_case, int64_t samples) {
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    if (IsParameter(i)) continue;
    std::vector<int64_t> dims(op_case.inputs[i].dims().begin(), op_case.inputs[i].dims().end());
    dims[0] = samples;
    op_case.inputs[i] = Shape(dims);
  }
  return op_case;
}

// The first outputs of a batch of 7 are those of its parts of 3 and 4, one after the other.
void ExpectSamplesForThemselves(const Runner& run, const OpCase& op_case, size_t num_outputs) {
  SCOPED_TRACE(ToString(op_case));
  const auto data = Draw(op_case);
  const auto whole = run(op_case, data);
  const auto first = run(CaseOfPart(op_case, 3), PartOf(op_case, data, 0, 3));
  const auto second = run(CaseOfPart(op_case, 4), PartOf(op_case, data, 3, 7));
  for (size_t o = 0; o < num_outputs; ++o) {
    Floats parts = first[o].floats;
    parts.insert(parts.end(), second[o].floats.begin(), second[o].floats.end());
    EXPECT_TRUE(HaveSameBits(parts, whole[o].floats)) << "output " << o;
  }
}

void ExpectNoSampleDependsOnAnother(const Runner& run) {
  const GroupedShape shapes[] = {
      {{7, 6}, 3}, {{7, 5, 5, 12}, 3}, {{7, 20, 20, 48}, 6}, {{7, 8, 8, 64}, 8}};
  for (const auto& [x, groups] : shapes) {
    ExpectSamplesForThemselves(run, WithRelu(GroupNormCase(x, groups)), 3);
    ExpectSamplesForThemselves(run, WithRelu(GroupNormGradCase(x, groups)), 1);
    ExpectSamplesForThemselves(run, GroupNormGradAddCase(x, groups), 1);
  }
}

void ExpectTheBitsOfThePair(const Runner& run) {
  for (const auto& [x, groups] : kGroupedShapes) {
    const OpCase norm_case = GroupNormCase(x, groups);
    SCOPED_TRACE(ToString(norm_case));
    const auto data = Draw(norm_case);
    const auto dy = Draw(GroupNormGradCase(x, groups))[5];
    const auto plain = run(norm_case, data);
    const auto y = run({.op = "relu", .inputs = {x}}, {plain[0]})[0];
    const auto fused = run(WithRelu(norm_case), data);
    EXPECT_TRUE(HaveSameBits(fused[0].floats, y.floats));
    EXPECT_TRUE(HaveSameBits(fused[1].floats, plain[1].floats));

    const std::vector<OpData> known = {data[0], data[1], data[2], plain[1], plain[2]};
    const auto with = [&](std::initializer_list<OpData> more) {
      std::vector<OpData> all = known;
      all.insert(all.end(), more);
      return all;
    };
    const auto gate = run({.op = "relu_grad", .inputs = {x, x}}, {y, dy})[0];
    const auto pair = run(GroupNormGradCase(x, groups), with({gate}));
    const auto one = run(WithRelu(GroupNormGradCase(x, groups)), with({dy}));
    for (size_t o = 0; o < 3; ++o) EXPECT_TRUE(HaveSameBits(one[o].floats, pair[o].floats)) << o;

    // A gradient from another path; x is used for it.
    const auto sum = run({.op = "add", .inputs = {x, x}}, {data[0], pair[0]})[0];
    const auto three = run(WithRelu(GroupNormGradAddCase(x, groups)), with({dy, data[0]}));
    EXPECT_TRUE(HaveSameBits(three[0].floats, sum.floats));
    EXPECT_TRUE(HaveSameBits(three[1].floats, pair[1].floats));
  }
}

TEST(GroupNormBits, ItsStatisticsAreEnoughToComputeItAgain) {
  ForEachCpuKernel(&ExpectItsStatisticsSuffice);
}

TEST(GroupNormBits, NoSampleDependsOnAnother) { ForEachCpuKernel(&ExpectNoSampleDependsOnAnother); }

TEST(GroupNormBits, WithReluGivesTheBitsOfThePair) { ForEachCpuKernel(&ExpectTheBitsOfThePair); }

class CudaGroupNormBits : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_F(CudaGroupNormBits, ItsStatisticsAreEnoughToComputeItAgain) {
  ExpectItsStatisticsSuffice(&RunOnGpu);
}

TEST_F(CudaGroupNormBits, NoSampleDependsOnAnother) { ExpectNoSampleDependsOnAnother(&RunOnGpu); }

TEST_F(CudaGroupNormBits, WithReluGivesTheBitsOfThePair) { ExpectTheBitsOfThePair(&RunOnGpu); }

}  // namespace
}  // namespace thimble
