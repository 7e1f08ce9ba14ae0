#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "tests/support/tolerance.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Numbers = std::vector<float>;

int64_t Channels(const Shape& x) { return x[x.rank() - 1]; }

// All elements of a group go into its sums, all rows of a channel into those of gamma and beta.
double LongestSum(const Shape& x, int64_t groups) {
  const double per_sample = x[0] == 0 ? 0 : static_cast<double>(x.elements() / x[0]);
  const double rows = Channels(x) == 0 ? 0 : static_cast<double>(x.elements() / Channels(x));
  return std::max({1.0, per_sample / static_cast<double>(groups), rows});
}

OpCase MakeCase(const Shape& x, int64_t groups) {
  const Shape channels{Channels(x)};
  return {.op = "group_norm",
          .inputs = {x, channels, channels},
          .attributes = {{"groups", groups}},
          .positive_inputs = {1},
          .shared_sum_size = LongestSum(x, groups)};
}

OpCase MakeApplyCase(const Shape& x, int64_t groups) {
  OpCase op_case = MakeCase(x, groups);
  op_case.op = "group_norm_apply";
  op_case.inputs.insert(op_case.inputs.end(), 2, Shape{x[0], groups});
  op_case.positive_inputs = {1, 4};
  // Roundings one after the other: with epsilon, root, quotient, difference, product, with beta.
  op_case.shared_sum_size = 6;
  return op_case;
}

OpCase MakeGradCase(const Shape& x, int64_t groups) {
  OpCase op_case = MakeApplyCase(x, groups);
  op_case.op = "group_norm_grad";
  op_case.inputs.push_back(x);
  op_case.shared_sum_size = LongestSum(x, groups);
  return op_case;
}

OpCase MakeGradAddCase(const Shape& x, int64_t groups) {
  OpCase op_case = MakeGradCase(x, groups);
  op_case.op = "group_norm_grad_add";
  op_case.inputs.push_back(x);
  return op_case;
}

OpCase WithRelu(OpCase op_case) {
  op_case.attributes.Set("relu", int64_t{1});
  return op_case;
}

struct GroupedShape {
  Shape x;
  int64_t groups;
};

// Few and many samples, narrow and wide groups, one and several chunks of a sample.
const GroupedShape kShapes[] = {{{1, 2}, 1},          {{2, 6}, 3},           {{5, 3, 1}, 1},
                                {{3, 5, 7, 3}, 3},    {{2, 4, 5, 17}, 1},    {{9, 3, 3, 33}, 11},
                                {{2, 16, 16, 64}, 8}, {{13, 8, 8, 32}, 4},   {{2, 5, 7, 300}, 25},
                                {{3, 7, 7, 12}, 2},   {{1, 48, 48, 16}, 2},  {{2, 40, 40, 28}, 4},
                                {{0, 4, 4, 4}, 2},    {{2, 0, 3, 4}, 2},     {{3, 2, 2, 0}, 1},
                                {{2, 3, 1100}, 1},    {{1, 60, 60, 10}, 10}, {{2, 2, 2, 2056}, 2}};

}  // namespace

std::vector<OpCase> GroupNormCases() {
  std::vector<OpCase> cases;
  for (const auto& [x, groups] : kShapes) {
    for (const OpCase& op_case : {MakeCase(x, groups), MakeApplyCase(x, groups),
                                  MakeGradCase(x, groups), MakeGradAddCase(x, groups)}) {
      cases.push_back(op_case);
      cases.push_back(WithRelu(op_case));
    }
  }
  // Nothing is left of a float's digits if the mean is not taken away first.
  OpCase large_mean = MakeCase({2, 17, 19, 20}, 5);
  large_mean.first_input_offset = 1e4;
  cases.push_back(large_mean);
  return cases;
}

namespace {

TEST(GroupNorm, NormalizesEachGroupOfEachSample) {
  OpCase op_case = MakeCase({2, 1, 4}, 2);
  op_case.attributes.Set("epsilon", 0.0);
  for (const auto& outputs : RunAllKernels(
           op_case,
           {{{1, 3, 10, 50, 5, 5.5, -2, 2}, {}}, {{1, 1, 2, 2}, {}}, {{0, 0, 5, 6}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (Numbers{-1, 1, 3, 8, -1, 1, 3, 8}));
    EXPECT_EQ(outputs[1].floats, (Numbers{2, 30, 5.25, 0}));
    EXPECT_EQ(outputs[2].floats, (Numbers{1, 400, 0.0625, 4}));
  }
}

TEST(GroupNorm, MeasuresToTheLastDigits) {
  const OpCase op_case = MakeCase({3, 48, 48, 16}, 2);
  const PreparedCase prepared(op_case);
  auto inputs = RandomInputs(prepared, 1.0);
  const auto expected = RunReferenceOp<double>(prepared.op, prepared.call(), inputs);
  std::vector<OpData> data(3);
  for (size_t i = 0; i < 3; ++i) {
    data[i].floats.assign(inputs[i].numbers.begin(), inputs[i].numbers.end());
  }
  const auto actual = RunOp(op_case, data);
  for (size_t i = 0; i < 6; ++i) {
    const double variance = expected[2].numbers[i];
    EXPECT_NEAR(actual[1].floats[i], expected[1].numbers[i], 2 * kFloatRounding);
    EXPECT_NEAR(actual[2].floats[i], variance, 4 * kFloatRounding * variance);
  }
}

TEST(GroupNorm, MeasuresVarianceBesideLargeMeansOfItsChannels) {
  // 1e4 and -1e4 +- 1: the variance is 1e8 + 1, within a float's rounding.
  Numbers x(2 * 3000);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = (i % 2 == 0 ? 1e4F : -1e4F) + (i % 4 < 2 ? 1.0F : -1.0F);
  }
  const auto outputs = RunOp(MakeCase({1, 3000, 2}, 1), {{x, {}}, {{1, 1}, {}}, {{0, 0}, {}}});
  EXPECT_EQ(outputs[1].floats[0], 0);
  EXPECT_EQ(outputs[2].floats[0], static_cast<float>(1e8 + 1));
}

TEST(GroupNorm, ConstantGroupGivesBeta) {
  const auto outputs =
      RunOp(MakeCase({1, 300, 2}, 1), {{Numbers(600, 0.1F), {}}, {{1, 2}, {}}, {{7, -3}, {}}});
  EXPECT_EQ(outputs[2].floats[0], 0);
  for (size_t i = 0; i < 600; ++i) EXPECT_NEAR(outputs[0].floats[i], i % 2 == 0 ? 7 : -3, 1e-5);
}

TEST(GroupNorm, NanStaysInItsGroupOfItsSample) {
  Numbers x = {1, 2, 3, 4, 5, 6, 7, 8};
  x[1] = NAN;
  for (const auto& outputs : RunAllKernels(WithRelu(MakeCase({2, 1, 4}, 2)),
                                           {{x, {}}, {{1, 1, 1, 1}, {}}, {{0, 0, 0, 0}, {}}})) {
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(outputs[0].floats[i]), i < 2) << i;
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(outputs[2].floats[i]), i == 0) << i;
  }
}

TEST(GroupNorm, NoRowsGiveZeroStatistics) {
  for (const auto& outputs :
       RunAllKernels(MakeCase({2, 0, 2}, 1), {{}, {{1, 1}, {}}, {{0, 0}, {}}})) {
    EXPECT_EQ(outputs[1].floats, (Numbers{0, 0}));
    EXPECT_EQ(outputs[2].floats, (Numbers{0, 0}));
  }
}

TEST(GroupNorm, ScratchStaysBounded) {
  // 100 images of 32 x 32 x 32, forward and backward: a fiftieth of the activation at most.
  const Shape x{100, 32, 32, 32};
  for (const OpCase& op_case : {MakeCase(x, 4), MakeGradAddCase(x, 4)}) {
    const PreparedCase prepared(op_case);
    const size_t scratch = prepared.op.kernels()[0].scratch_bytes(prepared.call(), {});
    EXPECT_LE(scratch, static_cast<size_t>(x.elements()) * sizeof(float) / 50);
  }
}

bool SameBits(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// Calls body for the vector kernel on every target and for the reference.
void ForEachKernel(const std::function<void(size_t kernel)>& body) {
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_TRUE(PinSimdTarget(target).ok());
    SCOPED_TRACE(target);
    body(0);
  }
  ASSERT_TRUE(PinSimdTarget("auto").ok());
  SCOPED_TRACE("reference");
  body(1);
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

TEST(GroupNorm, ItsStatisticsAreEnoughToComputeItAgain) {
  for (const auto& [x, groups] : kShapes) {
    const OpCase norm_case = WithRelu(MakeCase(x, groups));
    const OpCase apply_case = WithRelu(MakeApplyCase(x, groups));
    SCOPED_TRACE(ToString(norm_case));
    auto data = Draw(norm_case);
    for (float& number : data[0].floats) number += 1e3F;  // means that no float is close to
    ForEachKernel([&](size_t kernel) {
      const auto norm = RunOp(norm_case, data, kernel);
      const auto again = RunOp(apply_case, {data[0], data[1], data[2], norm[1], norm[2]}, kernel);
      EXPECT_TRUE(SameBits(again[0].floats, norm[0].floats));
    });
  }
}

// Those of samples [begin, end) of arrays (B, ...); parameters stay as they are.
std::vector<OpData> PartOf(const OpCase& op_case, const std::vector<OpData>& data, int64_t begin,
                           int64_t end) {
  std::vector<OpData> part = data;
  const int64_t batch = op_case.inputs[0][0];
  for (size_t i = 0; i < data.size(); ++i) {
    if (i == 1 || i == 2) continue;
    const auto size = static_cast<int64_t>(data[i].floats.size()) / batch;
    part[i].floats.assign(data[i].floats.begin() + begin * size,
                          data[i].floats.begin() + end * size);
  }
  return part;
}

OpCase CaseOfPart(OpCase op_case, int64_t samples) {
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    if (i == 1 || i == 2) continue;
    std::vector<int64_t> dims(op_case.inputs[i].dims().begin(), op_case.inputs[i].dims().end());
    dims[0] = samples;
    op_case.inputs[i] = Shape(dims);
  }
  return op_case;
}

// The first `outputs` outputs of a batch of 7 are those of its parts of 3 and 4, one after the
// other, bit for bit.
void ExpectSamplesForThemselves(const OpCase& op_case, size_t outputs) {
  SCOPED_TRACE(ToString(op_case));
  const auto data = Draw(op_case);
  ForEachKernel([&](size_t kernel) {
    const auto whole = RunOp(op_case, data, kernel);
    const auto first = RunOp(CaseOfPart(op_case, 3), PartOf(op_case, data, 0, 3), kernel);
    const auto second = RunOp(CaseOfPart(op_case, 4), PartOf(op_case, data, 3, 7), kernel);
    for (size_t o = 0; o < outputs; ++o) {
      Numbers parts = first[o].floats;
      parts.insert(parts.end(), second[o].floats.begin(), second[o].floats.end());
      EXPECT_TRUE(SameBits(parts, whole[o].floats)) << "output " << o;
    }
  });
}

TEST(GroupNorm, NoSampleDependsOnAnother) {
  const GroupedShape shapes[] = {
      {{7, 6}, 3}, {{7, 5, 5, 12}, 3}, {{7, 20, 20, 48}, 6}, {{7, 8, 8, 64}, 8}};
  for (const auto& [x, groups] : shapes) {
    ExpectSamplesForThemselves(WithRelu(MakeCase(x, groups)), 3);
    ExpectSamplesForThemselves(WithRelu(MakeGradCase(x, groups)), 1);
    ExpectSamplesForThemselves(MakeGradAddCase(x, groups), 1);
  }
}

TEST(GroupNorm, WithReluGivesTheBitsOfThePair) {
  for (const auto& [x, groups] : kShapes) {
    const OpCase norm_case = MakeCase(x, groups);
    SCOPED_TRACE(ToString(norm_case));
    const auto data = Draw(norm_case);
    const auto dy = Draw(MakeGradCase(x, groups))[5];
    ForEachKernel([&](size_t kernel) {
      const auto plain = RunOp(norm_case, data, kernel);
      const auto y = RunOp({.op = "relu", .inputs = {x}}, {plain[0]}, kernel)[0];
      const auto fused = RunOp(WithRelu(norm_case), data, kernel);
      EXPECT_TRUE(SameBits(fused[0].floats, y.floats));
      EXPECT_TRUE(SameBits(fused[1].floats, plain[1].floats));

      const auto gate = RunOp({.op = "relu_grad", .inputs = {x, x}}, {y, dy}, kernel)[0];
      const auto pair = RunOp(MakeGradCase(x, groups),
                              {data[0], data[1], data[2], plain[1], plain[2], gate}, kernel);
      const auto one = RunOp(WithRelu(MakeGradCase(x, groups)),
                             {data[0], data[1], data[2], plain[1], plain[2], dy}, kernel);
      for (size_t o = 0; o < 3; ++o) EXPECT_TRUE(SameBits(one[o].floats, pair[o].floats)) << o;

      // A gradient that came another way; x will do.
      const auto sum = RunOp({.op = "add", .inputs = {x, x}}, {data[0], pair[0]}, kernel)[0];
      const auto three =
          RunOp(WithRelu(MakeGradAddCase(x, groups)),
                {data[0], data[1], data[2], plain[1], plain[2], dy, data[0]}, kernel);
      EXPECT_TRUE(SameBits(three[0].floats, sum.floats));
      EXPECT_TRUE(SameBits(three[1].floats, pair[1].floats));
    });
  }
}

TEST(GroupNorm, OneGroupPerSampleOfARowIsLayerNorm) {
  OpCase op_case = MakeCase({2, 4}, 1);
  op_case.attributes.Set("epsilon", 0.0);
  for (const auto& outputs : RunAllKernels(
           op_case, {{{1, 3, 1, 3, 8, 4, 4, 8}, {}}, {Numbers(4, 1), {}}, {Numbers(4, 0), {}}})) {
    EXPECT_EQ(outputs[0].floats, (Numbers{-1, 1, -1, 1, 1, -1, -1, 1}));
  }
}

TEST(GroupNorm, RejectsWrongShapesAndGroups) {
  OpCase op_case = MakeCase({2, 2, 16}, 4);
  op_case.inputs[1] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'gamma' has shape (3), expected (16)"));
  op_case = MakeCase({2, 2, 16}, 4);
  op_case.inputs[2] = Shape{1, 16};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'beta' has shape (1, 16), expected (16)"));
  EXPECT_THAT(ShapeError(MakeCase(Shape{16}, 4)), HasSubstr("at least 2 dimensions (..., C)"));
  EXPECT_THAT(ShapeError(MakeCase({2, 16}, 5)),
              HasSubstr("16 channels cannot be cut into 5 equal groups"));
  EXPECT_THAT(ShapeError(MakeCase({2, 16}, 32)), HasSubstr("cannot be cut into 32"));
  for (const int64_t groups : {int64_t{0}, int64_t{-4}}) {
    op_case = MakeCase({2, 16}, 1);
    op_case.attributes.Set("groups", groups);
    EXPECT_THAT(ShapeError(op_case), HasSubstr("expected at least 1"));
  }
}

TEST(GroupNormApply, RejectsWrongShapes) {
  OpCase op_case = MakeApplyCase({2, 3, 16}, 4);
  op_case.inputs[3] = Shape{4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'mean' has shape (4), expected (2, 4)"));
  op_case = MakeApplyCase({2, 3, 16}, 4);
  op_case.inputs[4] = Shape{4, 2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'variance' has shape (4, 2), expected (2, 4)"));
}

TEST(GroupNormGrad, RejectsWrongShapes) {
  const char* names[] = {"", "'gamma'", "'beta'", "'mean'", "'variance'", "'dy'", "'other'"};
  for (size_t input = 1; input < 7; ++input) {
    OpCase op_case = input == 6 ? MakeGradAddCase({2, 2, 16}, 4) : MakeGradCase({2, 2, 16}, 4);
    op_case.inputs[input] = Shape{5};
    EXPECT_THAT(ShapeError(op_case), HasSubstr(names[input]));
  }
}

}  // namespace
}  // namespace thimble
