#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/ops/sentences.h"
#include "tests/ops/tap_weights.h"
#include "tests/support/case_draw.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

struct DynamicConvSetting {
  int64_t positions = 1;
  int64_t heads = 1;
  int64_t head_channels = 1;
  int64_t taps = 1;
  bool causal = false;
  std::vector<double> lengths = {1};
  double rate = 0;

  Shape X() const { return {batch(), positions, heads * head_channels}; }
  Shape Logits() const { return {batch(), positions, heads * taps}; }
  int64_t batch() const { return static_cast<int64_t>(lengths.size()); }
};

OpCase MakeDynamicConvCase(const DynamicConvSetting& setting, const std::string& op,
                           bool backward) {
  OpCase op_case{.op = op,
                 .inputs = {setting.X(), setting.Logits(), Shape{setting.batch()}},
                 .attributes = {{"heads", setting.heads},
                                {"causal", int64_t{setting.causal ? 1 : 0}},
                                {"rate", setting.rate},
                                {"seed", int64_t{7}},
                                {"stream", int64_t{3}}},
                 .integer_bound = 50000,
                 .given_inputs = {{2, setting.lengths}},
                 // Roundings of a tap: difference, exponential (2), sum of all taps, quotient,
                 // dropout, product, sum.
                 .shared_sum_size = static_cast<double>(8 * setting.taps)};
  if (backward) op_case.inputs.push_back(setting.X());
  if (setting.rate > 0) {
    op_case.inputs.push_back(Shape{setting.batch()});
    op_case.inputs.push_back(Shape{1});
  }
  return op_case;
}

OpCase DynamicConvCase(const DynamicConvSetting& setting) {
  return MakeDynamicConvCase(setting, "dynamic_conv", false);
}
OpCase DynamicConvGradCase(const DynamicConvSetting& setting) {
  return MakeDynamicConvCase(setting, "dynamic_conv_grad", true);
}

// Windows that do and do not fit the sentence, whole tiles and ends of tiles, whole vectors and
// ends of vectors.
std::vector<DynamicConvSetting> DynamicConvSettings() {
  return {
      {},
      {.positions = 5, .lengths = {5}},
      {.positions = 4, .taps = 3, .lengths = {4, 2, 0, 1}},
      {.positions = 6, .heads = 2, .head_channels = 3, .taps = 7, .lengths = {6, 5}},
      {.positions = 3, .heads = 2, .taps = 4, .causal = true, .lengths = {3, 1}},
      {.positions = 9, .head_channels = 17, .taps = 2, .causal = true, .lengths = {7}},
      {.positions = 25, .heads = 4, .head_channels = 32, .taps = 31, .lengths = {25, 18}},
      {.positions = 21,
       .heads = 2,
       .head_channels = 70,
       .taps = 15,
       .causal = true,
       .lengths = {21}},
      {.positions = 40, .heads = 3, .head_channels = 19, .taps = 7, .lengths = {33, 40, 8}},
      {.positions = 11, .heads = 2, .head_channels = 16, .taps = 33, .lengths = {11}},
      {.positions = 0, .heads = 2, .head_channels = 4, .taps = 3, .lengths = {0, 0}},
      {.positions = 4, .heads = 2, .head_channels = 0, .taps = 3, .lengths = {4}},
      {.positions = 4, .heads = 2, .head_channels = 2, .taps = 3, .lengths = {}},
      {.positions = 7, .heads = 2, .head_channels = 5, .taps = 5, .lengths = {7, 3}, .rate = 0.3},
      {.positions = 18,
       .heads = 3,
       .head_channels = 20,
       .taps = 31,
       .causal = true,
       .lengths = {18, 11},
       .rate = 0.1},
      // Blocks of a GPU have at most 28 positions of 128 channels, 224 of 16; whole sentences in
      // backward up to 80 positions; chunks of channels, from 129 taps on the smallest.
      {.positions = 57, .head_channels = 66, .taps = 5, .lengths = {50}},
      {.positions = 90,
       .heads = 2,
       .head_channels = 34,
       .taps = 6,
       .causal = true,
       .lengths = {90, 41},
       .rate = 0.2},
      {.positions = 97, .head_channels = 8, .taps = 11, .lengths = {97, 60}},
      {.positions = 6, .heads = 2, .head_channels = 136, .taps = 3, .lengths = {6, 4}},
      {.positions = 9, .head_channels = 20, .taps = 129, .lengths = {9}},
      {.positions = 230, .head_channels = 3, .taps = 4, .causal = true, .lengths = {229}},
      {.positions = 230, .head_channels = 2, .taps = 135, .lengths = {230}},
      {.positions = 5, .taps = 896, .causal = true, .lengths = {5}},
  };
}

DynamicConvSetting RandomDynamicConv(CaseDraw& draw) {
  DynamicConvSetting setting;
  // Long sentences, heads with many channels, or many taps: not all of it, for the reference.
  const bool is_long = draw.OneIn(6);
  const bool is_wide = !is_long && draw.OneIn(6);
  const bool has_many_taps = !is_long && !is_wide && draw.OneIn(10);
  setting.positions = draw.OneIn(24) ? 0 : draw.Size(is_long ? 250 : 40);
  setting.heads = draw.Size(is_long || is_wide || has_many_taps ? 2 : 5);
  setting.head_channels = draw.OneIn(24) ? 0 : draw.Size(is_long ? 35 : is_wide ? 270 : 70);
  setting.causal = draw.OneIn(2);
  const int64_t taps = has_many_taps ? 150 : 34;
  setting.taps = setting.causal ? draw.Size(taps) : 2 * draw.Between(0, taps / 2 - 1) + 1;
  // About 10^6 products at most.
  const int64_t products = setting.positions * setting.heads * setting.head_channels * setting.taps;
  const int64_t most = std::clamp<int64_t>(1'000'000 / std::max<int64_t>(1, products), 1, 5);
  const int64_t batch = draw.OneIn(24) ? 0 : draw.Between(1, most);
  setting.lengths = RandomLengths(draw, batch, setting.positions);
  setting.rate = draw.OneIn(2) ? 0 : 0.9 * draw.Fraction();
  return setting;
}

}  // namespace

std::vector<OpCase> DynamicConvCases() {
  std::vector<OpCase> cases;
  for (const DynamicConvSetting& setting : DynamicConvSettings()) {
    cases.push_back(DynamicConvCase(setting));
    cases.push_back(DynamicConvGradCase(setting));
  }
  return cases;
}

OpCase Random_dynamic_conv(CaseDraw& draw) { return DynamicConvCase(RandomDynamicConv(draw)); }
OpCase Random_dynamic_conv_grad(CaseDraw& draw) {
  return DynamicConvGradCase(RandomDynamicConv(draw));
}

namespace {

TEST(DynamicConv, CentredTapsReachBothSides) {
  const auto op_case = DynamicConvCase({.positions = 3, .taps = 3, .lengths = {3}});
  const Floats logits = LogitsOf({0.5F, 0.25F, 0.25F, 0.125F, 0.375F, 0.5F, 0.25F, 0.5F, 0.25F});
  for (const auto& outputs :
       RunAllKernels(op_case, {{{1, 10, 100}, {}}, {logits, {}}, {{}, {3}}})) {
    ExpectFloats(outputs[0].floats, {0.25F + 2.5F, 0.125F + 3.75F + 50, 2.5F + 50});
  }
}

TEST(DynamicConv, CausalTapsReachBackAndBeyondTheBeginning) {
  const auto op_case = DynamicConvCase({.positions = 2, .taps = 3, .causal = true, .lengths = {2}});
  const Floats logits = LogitsOf({0.5F, 0.25F, 0.25F, 0.125F, 0.375F, 0.5F});
  for (const auto& outputs : RunAllKernels(op_case, {{{1, 10}, {}}, {logits, {}}, {{}, {2}}})) {
    ExpectFloats(outputs[0].floats, {0.25F, 0.375F + 5});
  }
}

TEST(DynamicConv, EachHeadHasItsWeights) {
  const auto op_case = DynamicConvCase(
      {.positions = 2, .heads = 2, .head_channels = 2, .taps = 2, .causal = true, .lengths = {2}});
  const Floats logits = LogitsOf({0.5F, 0.5F, 0.75F, 0.25F, 0.5F, 0.5F, 0.75F, 0.25F});
  for (const auto& outputs :
       RunAllKernels(op_case, {{{1, 2, 3, 4, 5, 6, 7, 8}, {}}, {logits, {}}, {{}, {2}}})) {
    ExpectFloats(outputs[0].floats, {0.5F, 1, 0.75F, 1, 3, 4, 2.25F + 1.75F, 3 + 2});
  }
}

TEST(DynamicConvGrad, OfTwoTaps) {
  const auto op_case =
      DynamicConvGradCase({.positions = 2, .taps = 2, .causal = true, .lengths = {2}});
  const Floats logits = LogitsOf({0.5F, 0.5F, 0.75F, 0.25F});
  for (const auto& outputs :
       RunAllKernels(op_case, {{{1, 10}, {}}, {logits, {}}, {{}, {2}}, {{2, 4}, {}}})) {
    ExpectFloats(outputs[0].floats, {0.5F * 2 + 0.75F * 4, 0.25F * 4});
    // Weights' gradients: (0, 2) and (4, 40).
    ExpectFloats(outputs[1].floats, {-0.5F, 0.5F, 0.75F * (4 - 13), 0.25F * (40 - 13)});
  }
}

// Sentences of several lengths, more than a tile of positions, wide and narrow heads.
std::vector<DynamicConvSetting> PaddedSettings(double rate) {
  std::vector<DynamicConvSetting> settings;
  for (const bool causal : {false, true}) {
    for (const int64_t taps : {1, 3, 15}) {
      settings.push_back({.positions = 13,
                          .heads = 2,
                          .head_channels = taps == 3 ? 69 : 21,
                          .taps = taps,
                          .causal = causal,
                          .lengths = {13, 0, 1, 6, 11},
                          .rate = rate});
    }
  }
  return settings;
}

TEST(DynamicConvBits, NoSentenceDependsOnAnotherOrOnPadding) {
  for (const double rate : {0.0, 0.3}) {
    for (const DynamicConvSetting& setting : PaddedSettings(rate)) {
      ForEachKernelAndTarget([&](const OpRunner& run) {
        ExpectSentencesForThemselves(run, DynamicConvCase(setting),
                                     {.inputs = {0, 1}, .outputs = {0}, .lengths = 2});
        ExpectSentencesForThemselves(run, DynamicConvGradCase(setting),
                                     {.inputs = {0, 1, 3}, .outputs = {0, 1}, .lengths = 2});
      });
    }
  }
}

// Calls body for each CUDA kernel of the op that takes the case.
void ForEachCudaKernel(const OpCase& op_case, const std::function<void(const OpRunner&)>& body) {
  const PreparedCase prepared(op_case);
  size_t index = 0;
  for (const Kernel& kernel : prepared.op.kernels()) {
    if (kernel.device != DeviceKind::kCuda) continue;
    SCOPED_TRACE(kernel.name);
    const OpRunner run = [index](const OpCase& part, const std::vector<OpData>& data) {
      return RunOp(part, data, index, DeviceKind::kCuda);
    };
    if (kernel.declines(prepared.call()).empty()) body(run);
    ++index;
  }
}

// Padding decides how sentences are divided among blocks, and in backward how many kernels run.
TEST(CudaDynamicConvBits, NoSentenceDependsOnAnotherOrOnPadding) {
  if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  std::vector<DynamicConvSetting> settings = PaddedSettings(0.3);
  settings.push_back(
      {.positions = 78, .head_channels = 66, .taps = 7, .lengths = {78, 27}, .rate = 0.2});
  for (const DynamicConvSetting& setting : settings) {
    for (const DType type : {DType::kF32, DType::kF16}) {
      OpCase forward = DynamicConvCase(setting);
      forward.number_types = {type};
      ForEachCudaKernel(forward, [&](const OpRunner& run) {
        ExpectSentencesForThemselves(run, forward,
                                     {.inputs = {0, 1}, .outputs = {0}, .lengths = 2});
      });
      OpCase backward = DynamicConvGradCase(setting);
      backward.number_types = {type};
      ForEachCudaKernel(backward, [&](const OpRunner& run) {
        ExpectSentencesForThemselves(run, backward,
                                     {.inputs = {0, 1, 3}, .outputs = {0, 1}, .lengths = 2});
      });
    }
  }
}

// The weights of the taps with equal logits, as y of x = (0, .., 1, .., 0) shows them: y of
// position t and head h is the weight of tap position - t + P.
struct DroppedTaps {
  DynamicConvSetting setting{.positions = 9, .heads = 3, .taps = 5, .lengths = {9, 9}, .rate = 0.4};
  std::vector<int> samples = {31, 4};
  int epoch = 5;

  Floats Ones(const Shape& shape) const {
    return Floats(static_cast<size_t>(shape.elements()), 1.0F);
  }
  std::vector<std::vector<OpData>> Forward(const Floats& x) const {
    return RunAllKernels(
        DynamicConvCase(setting),
        {{x, {}}, {Ones(setting.Logits()), {}}, {{}, {9, 9}}, {{}, samples}, {{}, {epoch}}});
  }
  std::vector<std::vector<OpData>> Backward(const Floats& dy) const {
    return RunAllKernels(DynamicConvGradCase(setting), {{Ones(setting.X()), {}},
                                                        {Ones(setting.Logits()), {}},
                                                        {{}, {9, 9}},
                                                        {dy, {}},
                                                        {{}, samples},
                                                        {{}, {epoch}}});
  }
  Floats OneAt(int64_t b, int64_t t) const {
    Floats numbers(static_cast<size_t>(setting.X().elements()), 0.0F);
    std::fill_n(numbers.begin() + (b * 9 + t) * 3, 3, 1.0F);
    return numbers;
  }
  float Weight(int64_t b, int64_t t, int64_t h, int64_t k) const {
    const DropoutDraw draw(7, 3, setting.rate);
    const auto element = static_cast<uint32_t>((t * 3 + h) * 5 + k);
    const auto words =
        draw.Words(static_cast<uint32_t>(epoch),
                   static_cast<uint32_t>(samples[static_cast<size_t>(b)]), element / 4);
    return draw.Keeps(words[element % 4]) ? 1 / (5 * 0.6F) : 0;
  }
};

TEST(DynamicConvDropout, DrawsForSampleEpochAndWeight) {
  const DroppedTaps taps;
  for (int64_t s = 0; s < 9; ++s) {
    for (const auto& outputs : taps.Forward(taps.OneAt(1, s))) {
      for (int64_t t = std::max<int64_t>(0, s - 2); t < std::min<int64_t>(9, s + 3); ++t) {
        for (int64_t h = 0; h < 3; ++h) {
          EXPECT_FLOAT_EQ(outputs[0].floats[static_cast<size_t>((9 + t) * 3 + h)],
                          taps.Weight(1, t, h, s - t + 2))
              << "position " << t << ", head " << h << ", from " << s;
        }
      }
    }
  }
}

TEST(DynamicConvDropout, BackwardDropsTheSameWeights) {
  const DroppedTaps taps;
  for (int64_t t = 0; t < 9; ++t) {
    for (const auto& outputs : taps.Backward(taps.OneAt(0, t))) {
      for (int64_t s = std::max<int64_t>(0, t - 2); s < std::min<int64_t>(9, t + 3); ++s) {
        for (int64_t h = 0; h < 3; ++h) {
          EXPECT_FLOAT_EQ(outputs[0].floats[static_cast<size_t>(s * 3 + h)],
                          taps.Weight(0, t, h, s - t + 2))
              << "position " << s << ", head " << h << ", from " << t;
        }
      }
    }
  }
}

TEST(DynamicConvDropout, ARateNearZeroDropsNothing) {
  DynamicConvSetting setting{
      .positions = 12, .heads = 2, .head_channels = 20, .taps = 7, .lengths = {12, 7}};
  const auto plain_case = DynamicConvGradCase(setting);
  const auto data = RandomData(plain_case);
  setting.rate = 1e-12;  // below any 32-bit draw
  auto drawn = data;
  drawn.push_back({{}, {1, 2}});
  drawn.push_back({{}, {3}});
  const auto plain = RunOp(plain_case, data);
  const auto dropped = RunOp(DynamicConvGradCase(setting), drawn);
  for (size_t o = 0; o < 2; ++o) EXPECT_EQ(plain[o].floats, dropped[o].floats);
}

TEST(DynamicConvDropout, KeepsTheMean) {
  // Constant x and one sentence per sample: y is the sum of the kept weights.
  constexpr int64_t kSentences = 2000;
  const DynamicConvSetting setting{.positions = 1,
                                   .heads = 2,
                                   .taps = 1,
                                   .lengths = std::vector<double>(kSentences, 1.0),
                                   .rate = 0.3};
  std::vector<int> samples(kSentences);
  std::iota(samples.begin(), samples.end(), 0);
  const Floats ones(2 * kSentences, 1.0F);
  const auto y = RunOp(DynamicConvCase(setting), {{ones, {}},
                                                  {ones, {}},
                                                  {{}, std::vector<int>(kSentences, 1)},
                                                  {{}, samples},
                                                  {{}, {1}}})[0]
                     .floats;
  const double sum = std::accumulate(y.begin(), y.end(), 0.0);
  const double deviation = std::sqrt(2 * kSentences * 0.3 / 0.7);
  EXPECT_NEAR(sum, 2 * kSentences, 5 * deviation);
}

TEST(DynamicConv, LengthOutOfRangeMakesItsSentenceNan) {
  for (const int length : {-1, 3, INT_MAX, INT_MIN}) {
    const DynamicConvSetting setting{.positions = 2, .taps = 3, .lengths = {0, 0}};
    const OpData numbers{{1, 2, 3, 4}, {}};
    const OpData logits{Floats(12, 0.0F), {}};
    const OpData lengths{{}, {length, 1}};
    for (const auto& outputs :
         RunAllKernels(DynamicConvCase(setting), {numbers, logits, lengths})) {
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(outputs[0].floats[i]), i < 2);
    }
    for (const auto& outputs :
         RunAllKernels(DynamicConvGradCase(setting), {numbers, logits, lengths, numbers})) {
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(outputs[0].floats[i]), i < 2);
      for (size_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(outputs[1].floats[i]), i < 6);
    }
  }
}

TEST(DynamicConv, NanReachesOnlyTheWindowsAroundIt) {
  const DynamicConvSetting setting{.positions = 9, .taps = 3, .lengths = {9}};
  Floats x(9, 1.0F);
  x[4] = NAN;
  for (const auto& outputs :
       RunAllKernels(DynamicConvCase(setting), {{x, {}}, {Floats(27, 0.0F), {}}, {{}, {9}}})) {
    for (size_t t = 0; t < 9; ++t) {
      EXPECT_EQ(std::isnan(outputs[0].floats[t]), t >= 3 && t <= 5) << t;
    }
  }
  Floats logits(27, 0.0F);
  logits[13] = NAN;
  for (const auto& outputs :
       RunAllKernels(DynamicConvCase(setting), {{Floats(9, 1.0F), {}}, {logits, {}}, {{}, {9}}})) {
    for (size_t t = 0; t < 9; ++t) EXPECT_EQ(std::isnan(outputs[0].floats[t]), t == 4) << t;
  }
}

TEST(DynamicConvGrad, NanReachesOnlyWhatItsWindowsReach) {
  const DynamicConvSetting setting{.positions = 9, .head_channels = 3, .taps = 3, .lengths = {9}};
  const Floats ones(27, 1.0F);
  Floats with_nan = ones;
  with_nan[4 * 3 + 1] = NAN;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    OpCase op_case = DynamicConvGradCase(setting);
    op_case.number_types = {type};
    const auto run = [&](const Floats& x, const Floats& dy) {
      return RunAllKernels(op_case, {{x, {}}, {Floats(27, 0.0F), {}}, {{}, {9}}, {dy, {}}});
    };
    for (const auto& outputs : run(ones, with_nan)) {
      for (size_t i = 0; i < 27; ++i) {
        const size_t t = i / 3;
        EXPECT_EQ(std::isnan(outputs[0].floats[i]), t >= 3 && t <= 5 && i % 3 == 1) << i;
        EXPECT_EQ(std::isnan(outputs[1].floats[i]), t == 4) << i;
      }
    }
    for (const auto& outputs : run(with_nan, ones)) {
      for (size_t i = 0; i < 27; ++i) {
        EXPECT_FALSE(std::isnan(outputs[0].floats[i])) << i;
        EXPECT_EQ(std::isnan(outputs[1].floats[i]), i / 3 >= 3 && i / 3 <= 5) << i;
      }
    }
  }
}

TEST(DynamicConv, ScratchHoldsOneHeadOfOneSentencePerThread) {
  const OpCase op_case = DynamicConvGradCase({.positions = 25,
                                              .heads = 4,
                                              .head_channels = 128,
                                              .taps = 31,
                                              .lengths = std::vector<double>(160, 25.0)});
  const PreparedCase prepared(op_case);
  const auto bytes = [&](int threads) {
    return prepared.op.kernels()[0].scratch_bytes(prepared.call(), {.threads = threads});
  };
  // x and dy (25, 128), weights and their gradients (25, 32).
  EXPECT_EQ(bytes(1), 4 * 25 * (2 * 128 + 2 * 32));
  EXPECT_EQ(bytes(3), 3 * bytes(1));
  EXPECT_EQ(bytes(1000), 640 * bytes(1));
}

TEST(DynamicConv, RejectsWrongShapes) {
  const DynamicConvSetting setting{
      .positions = 3, .heads = 2, .head_channels = 4, .taps = 3, .lengths = {3, 1}};
  const auto with = [&](size_t input, const Shape& shape) {
    OpCase op_case = DynamicConvGradCase(setting);
    op_case.inputs[input] = shape;
    return op_case;
  };
  EXPECT_THAT(ShapeError(with(0, {2, 8})),
              HasSubstr("'x' has shape (2, 8), expected 3 dimensions"));
  EXPECT_THAT(ShapeError(with(1, {2, 3})), HasSubstr("expected 3 dimensions (B, T, H * K)"));
  EXPECT_THAT(ShapeError(with(1, {2, 4, 6})),
              HasSubstr("'logits' has shape (2, 4, 6), expected (2, 3, 6)"));
  EXPECT_THAT(ShapeError(with(1, {2, 3, 7})),
              HasSubstr("expected one or more taps for each of 2 heads"));
  EXPECT_THAT(ShapeError(with(1, {2, 3, 0})),
              HasSubstr("expected one or more taps for each of 2 heads"));
  EXPECT_THAT(ShapeError(with(1, {2, 3, 8})), HasSubstr("got 4 taps, expected an odd number"));
  EXPECT_THAT(ShapeError(with(2, {3})), HasSubstr("'lengths' has shape (3), expected (2)"));
  EXPECT_THAT(ShapeError(with(3, {2, 3, 9})), HasSubstr("'dy' has shape"));
  EXPECT_THAT(ShapeError(with(0, {2, 3, 9})),
              HasSubstr("9 channels cannot be divided among 2 heads"));
}

TEST(DynamicConv, RejectsWrongAttributesAndDraws) {
  DynamicConvSetting setting{.positions = 3, .taps = 3, .lengths = {3, 1}};
  OpCase op_case = DynamicConvCase(setting);
  op_case.attributes.Set("heads", int64_t{0});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("heads is 0, expected at least 1"));
  setting.rate = 0.5;
  op_case = DynamicConvCase(setting);
  op_case.inputs.resize(3);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("got 3 inputs, expected 5"));
  op_case = DynamicConvCase(setting);
  op_case.attributes.Set("rate", 0.0);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("got 5 inputs, expected 3"));
  op_case.attributes.Set("rate", 1.0);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("expected at least 0 and below 1"));
  op_case = DynamicConvCase(setting);
  op_case.inputs[3] = Shape{3};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'samples' has shape (3), expected (2)"));
  op_case = DynamicConvCase(setting);
  op_case.inputs[4] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'epoch' has shape (2), expected (1)"));
  setting.positions = int64_t{1} << 33;
  EXPECT_THAT(ShapeError(DynamicConvCase(setting)),
              HasSubstr("a sample has 25769803776 weights, dropout takes 17179869184"));
}

}  // namespace
}  // namespace thimble
