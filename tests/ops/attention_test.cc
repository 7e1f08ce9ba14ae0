#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <numeric>

#include "tests/ops/sentences.h"
#include "tests/support/case_draw.h"
#include "tests/support/cuda_memory.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

struct AttentionSetting {
  int64_t queries = 1;
  int64_t sources = 1;
  int64_t heads = 1;
  int64_t head_channels = 1;
  std::vector<double> lengths = {1};
  double rate = 0;
  double scale = 0;

  int64_t batch() const { return static_cast<int64_t>(lengths.size()); }
  Shape Q() const { return {batch(), queries, heads * head_channels}; }
  Shape K() const { return {batch(), sources, heads * head_channels}; }
};

OpCase MakeAttentionCase(const AttentionSetting& setting, const std::string& op, bool backward) {
  OpCase op_case{
      .op = op,
      .inputs = {setting.Q(), setting.K(), setting.K(), Shape{setting.batch()}},
      .attributes = {{"heads", setting.heads},
                     {"scale", setting.scale},
                     {"rate", setting.rate},
                     {"seed", int64_t{9}},
                     {"stream", int64_t{2}}},
      .integer_bound = 50000,
      .given_inputs = {{3, setting.lengths}},
      // Roundings of a source: the sum of its score's products, scale, difference,
      // exponential (2), sum of all sources, quotient, dropout, product, sum.
      // Few sources have the roundings of the softmax too.
      .shared_sum_size = static_cast<double>(9 * setting.sources + setting.head_channels + 64)};
  if (backward) op_case.inputs.push_back(setting.Q());
  if (setting.rate > 0) {
    op_case.inputs.push_back(Shape{setting.batch()});
    op_case.inputs.push_back(Shape{1});
  }
  return op_case;
}

OpCase AttentionCase(const AttentionSetting& setting) {
  return MakeAttentionCase(setting, "attention", false);
}
OpCase AttentionGradCase(const AttentionSetting& setting) {
  return MakeAttentionCase(setting, "attention_grad", true);
}

// One and several blocks of queries, whole tiles and ends of tiles in all directions. On a GPU:
// heads in one block with one tile and several, divided heads with one and several windows, one to
// four parts of channels, and heads that are too wide for all that.
std::vector<AttentionSetting> AttentionSettings() {
  return {
      {},
      {.queries = 3, .sources = 5, .lengths = {5}},
      {.queries = 4, .sources = 3, .heads = 2, .head_channels = 3, .lengths = {3, 0, 1}},
      {.queries = 29, .sources = 33, .heads = 2, .head_channels = 17, .lengths = {33, 20}},
      {.queries = 25, .sources = 25, .heads = 4, .head_channels = 32, .lengths = {25, 18}},
      {.queries = 60, .sources = 7, .head_channels = 40, .lengths = {7, 6}, .scale = 0.3},
      {.queries = 2, .sources = 70, .heads = 3, .head_channels = 5, .lengths = {70, 69}},
      {.queries = 15, .sources = 16, .heads = 2, .head_channels = 64, .lengths = {16}},
      {.queries = 0, .sources = 3, .heads = 2, .head_channels = 4, .lengths = {3, 0}},
      {.queries = 3, .sources = 0, .heads = 2, .head_channels = 4, .lengths = {0, 0}},
      {.queries = 3, .sources = 2, .heads = 2, .head_channels = 0, .lengths = {2}},
      {.queries = 3, .sources = 2, .heads = 2, .head_channels = 2, .lengths = {}},
      {.queries = 6, .sources = 9, .heads = 2, .head_channels = 5, .lengths = {9, 4}, .rate = 0.3},
      {.queries = 30, .sources = 20, .heads = 3, .head_channels = 21, .lengths = {20}, .rate = 0.1},
      {.queries = 32, .sources = 32, .head_channels = 64, .lengths = {32, 25}},
      {.queries = 32, .sources = 17, .head_channels = 128, .lengths = {17, 9}, .rate = 0.2},
      {.queries = 33, .sources = 16, .head_channels = 72, .lengths = {16, 15}, .rate = 0.4},
      {.queries = 65, .sources = 40, .head_channels = 24, .lengths = {40, 33, 0}, .rate = 0.2},
      {.queries = 16, .sources = 129, .head_channels = 8, .lengths = {129, 64}},
      {.queries = 10, .sources = 9, .head_channels = 136, .lengths = {9, 5}},
      {.queries = 40, .sources = 36, .head_channels = 256, .lengths = {36}},
      {.queries = 5,
       .sources = 6,
       .heads = 2,
       .head_channels = 264,
       .lengths = {6, 2, 0},
       .rate = 0.3},
      {.queries = 0, .sources = 70, .head_channels = 4, .lengths = {70, 3}},
      {.queries = 70, .sources = 0, .head_channels = 4, .lengths = {0}},
  };
}

AttentionSetting RandomAttention(CaseDraw& draw) {
  AttentionSetting setting;
  setting.queries = draw.OneIn(24) ? 0 : draw.Size(64);
  setting.sources = draw.OneIn(24) ? 0 : draw.Size(70);
  const bool is_wide = draw.OneIn(8);
  setting.heads = is_wide ? 1 : draw.Size(4);
  setting.head_channels = draw.OneIn(24) ? 0 : draw.Size(is_wide ? 280 : 70);
  // About half a million products at most.
  const int64_t products =
      setting.queries * setting.sources * setting.heads * setting.head_channels;
  const int64_t most = std::clamp<int64_t>(500'000 / std::max<int64_t>(1, products), 1, 5);
  const int64_t batch = draw.OneIn(24) ? 0 : draw.Between(1, most);
  setting.lengths = RandomLengths(draw, batch, setting.sources);
  setting.rate = draw.OneIn(2) ? 0 : 0.9 * draw.Fraction();
  setting.scale = draw.OneIn(2) ? 0 : draw.Fraction() - 0.5;
  return setting;
}

}  // namespace

std::vector<OpCase> AttentionCases() {
  std::vector<OpCase> cases;
  for (const AttentionSetting& setting : AttentionSettings()) {
    cases.push_back(AttentionCase(setting));
    cases.push_back(AttentionGradCase(setting));
  }
  return cases;
}

OpCase Random_attention(CaseDraw& draw) { return AttentionCase(RandomAttention(draw)); }
OpCase Random_attention_grad(CaseDraw& draw) { return AttentionGradCase(RandomAttention(draw)); }

namespace {

// The score that gives a source `times` the probability of a source with score 0.
float ScoreOf(float times) { return std::log(times); }

void ExpectNear(const Floats& actual, const Floats& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST(Attention, WeighsValuesByTheSoftmaxOfTheProducts) {
  const auto op_case = AttentionCase({.queries = 2, .sources = 3, .lengths = {2}, .scale = 0.5});
  // Probabilities: (1/4, 3/4), (1/2, 1/2); the third source is padding.
  for (const auto& outputs : RunAllKernels(
           op_case, {{{2, 0}, {}}, {{0, ScoreOf(3), NAN}, {}}, {{4, 8, NAN}, {}}, {{}, {2}}})) {
    ExpectNear(outputs[0].floats, {7, 6});
  }
}

TEST(Attention, HeadsAreApartAndScaledByTheirWidth) {
  const auto op_case =
      AttentionCase({.queries = 1, .sources = 2, .heads = 2, .head_channels = 4, .lengths = {2}});
  // Head 0: product 2 log 3 / sqrt(4); head 1: 0.
  const Floats q = {1, 1, 0, 0, 0, 0, 5, 5};
  const Floats k = {0, 0, 0, 0, 1, 2, 0, 0, ScoreOf(3), ScoreOf(3), 9, 9, 3, 4, 0, 0};
  Floats v(16, 0);
  v[0] = 4;
  v[4] = 4;
  v[8] = 8;
  v[12] = 8;
  for (const auto& outputs : RunAllKernels(op_case, {{q, {}}, {k, {}}, {v, {}}, {{}, {2}}})) {
    ExpectNear(outputs[0].floats, {7, 0, 0, 0, 6, 0, 0, 0});
  }
}

TEST(AttentionGrad, OfTwoSources) {
  const auto op_case = AttentionGradCase({.queries = 1, .sources = 2, .lengths = {2}, .scale = 1});
  // Probabilities (1/4, 3/4), their gradients (8, 16), mean 14.
  for (const auto& outputs : RunAllKernels(
           op_case, {{{1}, {}}, {{2, 2 + ScoreOf(3)}, {}}, {{4, 8}, {}}, {{}, {2}}, {{2}, {}}})) {
    ExpectNear(outputs[0].floats, {-1.5F * 2 + 1.5F * (2 + ScoreOf(3))});
    ExpectNear(outputs[1].floats, {-1.5F, 1.5F});
    ExpectNear(outputs[2].floats, {0.5F, 1.5F});
  }
}

TEST(AttentionBits, NoSentenceDependsOnAnotherOrOnPadding) {
  for (const double rate : {0.0, 0.3}) {
    for (const int64_t head_channels : {5, 40}) {
      const AttentionSetting setting{.queries = 31,
                                     .sources = 37,
                                     .heads = 2,
                                     .head_channels = head_channels,
                                     .lengths = {37, 0, 1, 16, 33},
                                     .rate = rate};
      ForEachKernelAndTarget([&](const OpRunner& run) {
        ExpectSentencesForThemselves(run, AttentionCase(setting),
                                     {.inputs = {1, 2}, .outputs = {}, .lengths = 3});
        ExpectSentencesForThemselves(run, AttentionGradCase(setting),
                                     {.inputs = {1, 2}, .outputs = {1, 2}, .lengths = 3});
      });
    }
  }
}

TEST(AttentionBits, QueriesDoNotDependOnEachOther) {
  const AttentionSetting setting{.queries = 40,
                                 .sources = 11,
                                 .heads = 2,
                                 .head_channels = 6,
                                 .lengths = {9, 11},
                                 .rate = 0.2};
  const OpCase op_case = AttentionCase(setting);
  const auto data = RandomData(op_case);
  AttentionSetting fewer = setting;
  fewer.queries = 30;
  auto fewer_data = data;
  fewer_data[0].floats.clear();
  for (int64_t b = 0; b < 2; ++b) {
    const auto cut = ArrayOf(setting.Q(), data[0].floats).Cut(b, 30, 0, 0);
    fewer_data[0].floats.insert(fewer_data[0].floats.end(), cut.begin(), cut.end());
  }
  ForEachKernelAndTarget([&](const OpRunner& run) {
    const Floats y = run(op_case, data)[0].floats;
    const Floats y_of_fewer = run(AttentionCase(fewer), fewer_data)[0].floats;
    for (int64_t b = 0; b < 2; ++b) {
      EXPECT_TRUE(HaveSameFloatBits(ArrayOf(setting.Q(), y).Cut(b, 30, 0, 0),
                                    ArrayOf(fewer.Q(), y_of_fewer).Cut(b, 30, 0, 0)));
    }
  });
}

// Sentences of the batch, alone and with padding, go different ways on a GPU: with one tile, with
// several in a block, and divided among blocks.
class CudaAttentionBits : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no CUDA device";
  }
  static std::vector<OpData> Run(const OpCase& op_case, const std::vector<OpData>& data) {
    return RunOp(op_case, data, 0, DeviceKind::kCuda);
  }
};

TEST_F(CudaAttentionBits, NoSentenceDependsOnAnotherOrOnPadding) {
  struct Kind {
    DType type;
    int64_t head_channels;
    double rate;
  };
  for (const Kind& kind :
       {Kind{DType::kF32, 8, 0}, Kind{DType::kF16, 72, 0.3}, Kind{DType::kBF16, 5, 0}}) {
    const AttentionSetting setting{.queries = 31,
                                   .sources = 70,
                                   .heads = 2,
                                   .head_channels = kind.head_channels,
                                   .lengths = {70, 0, 17, 35},
                                   .rate = kind.rate};
    OpCase forward = AttentionCase(setting);
    OpCase backward = AttentionGradCase(setting);
    forward.number_types = backward.number_types = {kind.type};
    ExpectSentencesForThemselves(&Run, forward, {.inputs = {1, 2}, .outputs = {}, .lengths = 3});
    ExpectSentencesForThemselves(&Run, backward,
                                 {.inputs = {1, 2}, .outputs = {1, 2}, .lengths = 3});
  }
}

TEST_F(CudaAttentionBits, NoGradientDependsOnQueriesWithoutOne) {
  AttentionSetting setting{
      .queries = 70, .sources = 30, .heads = 2, .head_channels = 40, .lengths = {30, 11}};
  for (const DType type : {DType::kF32, DType::kF16}) {
    OpCase op_case = AttentionGradCase(setting);
    op_case.number_types = {type};
    auto data = RandomData(op_case);
    const auto cut = [&](const Floats& numbers, int64_t count, int64_t padding) {
      Floats sentences;
      for (int64_t b = 0; b < setting.batch(); ++b) {
        const auto one = ArrayOf(setting.Q(), numbers).Cut(b, count, padding, 0);
        sentences.insert(sentences.end(), one.begin(), one.end());
      }
      return sentences;
    };
    for (const int64_t queries : {50, 31}) {
      data[4].floats = cut(data[4].floats, queries, setting.queries - queries);
      const auto padded = Run(op_case, data);
      AttentionSetting fewer = setting;
      fewer.queries = queries;
      OpCase fewer_case = AttentionGradCase(fewer);
      fewer_case.number_types = {type};
      auto fewer_data = data;
      for (const size_t input : {0, 4}) {
        fewer_data[input].floats = cut(data[input].floats, queries, 0);
      }
      const auto outputs = Run(fewer_case, fewer_data);
      EXPECT_TRUE(HaveSameFloatBits(outputs[0].floats, cut(padded[0].floats, queries, 0)));
      EXPECT_TRUE(HaveSameFloatBits(outputs[1].floats, padded[1].floats));
      EXPECT_TRUE(HaveSameFloatBits(outputs[2].floats, padded[2].floats));
    }
  }
}

// Equal scores: all probabilities are a quarter before dropout.
struct DroppedProbabilities {
  AttentionSetting setting{.queries = 5, .sources = 4, .heads = 3, .lengths = {4, 4}, .rate = 0.4};
  std::vector<int> samples = {31, 4};
  int epoch = 5;

  static Floats Zeros(const Shape& shape) {
    return Floats(static_cast<size_t>(shape.elements()), 0.0F);
  }
  // Values of ones at one source, or dy of ones at one query.
  static Floats OneAt(const Shape& shape, int64_t position) {
    Floats numbers = Zeros(shape);
    const int64_t width = shape[2];
    for (int64_t b = 0; b < shape[0]; ++b) {
      std::fill_n(numbers.begin() + (b * shape[1] + position) * width, width, 1.0F);
    }
    return numbers;
  }
  std::vector<OpData> Inputs(const Floats& v) const {
    return {{Zeros(setting.Q()), {}}, {Zeros(setting.K()), {}}, {v, {}}, {{}, {4, 4}}};
  }
  std::vector<OpData> WithDraws(std::vector<OpData> inputs) const {
    inputs.push_back({{}, samples});
    inputs.push_back({{}, {epoch}});
    return inputs;
  }
  float Probability(int64_t b, int64_t t, int64_t h, int64_t s) const {
    const DropoutDraw draw(9, 2, setting.rate);
    const auto element = static_cast<uint32_t>((t * 3 + h) * 4096 + s);
    const auto words =
        draw.Words(static_cast<uint32_t>(epoch),
                   static_cast<uint32_t>(samples[static_cast<size_t>(b)]), element / 4);
    return draw.Keeps(words[element % 4]) ? 0.25F / 0.6F : 0;
  }
};

TEST(AttentionDropout, DrawsForSampleEpochAndProbability) {
  const DroppedProbabilities dropped;
  for (int64_t s = 0; s < 4; ++s) {
    const Floats v = DroppedProbabilities::OneAt(dropped.setting.K(), s);
    for (const auto& outputs :
         RunAllKernels(AttentionCase(dropped.setting), dropped.WithDraws(dropped.Inputs(v)))) {
      for (int64_t i = 0; i < 2 * 5 * 3; ++i) {
        EXPECT_FLOAT_EQ(outputs[0].floats[static_cast<size_t>(i)],
                        dropped.Probability(i / 15, i / 3 % 5, i % 3, s))
            << "output " << i << ", source " << s;
      }
    }
  }
}

TEST(AttentionDropout, BackwardDropsTheSameProbabilities) {
  const DroppedProbabilities dropped;
  for (int64_t t = 0; t < 5; ++t) {
    auto inputs = dropped.Inputs(DroppedProbabilities::Zeros(dropped.setting.K()));
    inputs.push_back({DroppedProbabilities::OneAt(dropped.setting.Q(), t), {}});
    for (const auto& outputs :
         RunAllKernels(AttentionGradCase(dropped.setting), dropped.WithDraws(inputs))) {
      for (int64_t i = 0; i < 2 * 4 * 3; ++i) {
        EXPECT_FLOAT_EQ(outputs[2].floats[static_cast<size_t>(i)],
                        dropped.Probability(i / 12, t, i % 3, i / 3 % 4))
            << "dv " << i << ", query " << t;
      }
    }
  }
}

TEST(AttentionDropout, ARateNearZeroDropsNothing) {
  AttentionSetting setting{
      .queries = 30, .sources = 12, .heads = 2, .head_channels = 20, .lengths = {12, 7}};
  const auto plain_case = AttentionGradCase(setting);
  const auto data = RandomData(plain_case);
  setting.rate = 1e-12;  // below any 32-bit draw
  auto drawn = data;
  drawn.push_back({{}, {1, 2}});
  drawn.push_back({{}, {3}});
  const auto plain = RunOp(plain_case, data);
  const auto dropped = RunOp(AttentionGradCase(setting), drawn);
  for (size_t o = 0; o < 3; ++o) EXPECT_EQ(plain[o].floats, dropped[o].floats);
}

TEST(AttentionDropout, KeepsTheMean) {
  constexpr int64_t kQueries = 3000;
  const AttentionSetting setting{.queries = kQueries, .lengths = {1}, .rate = 0.3};
  const auto y =
      RunOp(
          AttentionCase(setting),
          {{Floats(kQueries, 0.0F), {}}, {{1}, {}}, {{1}, {}}, {{}, {1}}, {{}, {7}}, {{}, {1}}})[0]
          .floats;
  const double sum = std::accumulate(y.begin(), y.end(), 0.0);
  EXPECT_NEAR(sum, kQueries, 5 * std::sqrt(kQueries * 0.3 / 0.7));
}

TEST(Attention, LengthOutOfRangeMakesItsSentenceNan) {
  for (const int length : {-1, 3, INT_MAX, INT_MIN}) {
    const AttentionSetting setting{.queries = 2, .sources = 2, .lengths = {0, 0}};
    const OpData numbers{{1, 2, 3, 4}, {}};
    const OpData lengths{{}, {length, 1}};
    for (const auto& outputs :
         RunAllKernels(AttentionCase(setting), {numbers, numbers, numbers, lengths})) {
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(outputs[0].floats[i]), i < 2);
    }
    for (const auto& outputs :
         RunAllKernels(AttentionGradCase(setting), {numbers, numbers, numbers, lengths, numbers})) {
      for (size_t o = 0; o < 3; ++o) {
        for (size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(outputs[o].floats[i]), i < 2);
      }
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflowAndNanStaysInItsQuery) {
  const auto op_case = AttentionCase({.queries = 3, .sources = 2, .lengths = {2}});
  for (const auto& outputs :
       RunAllKernels(op_case, {{{1e30F, NAN, 0}, {}}, {{0, 1e8F}, {}}, {{2, 4}, {}}, {{}, {2}}})) {
    EXPECT_EQ(outputs[0].floats[0], 4);
    EXPECT_TRUE(std::isnan(outputs[0].floats[1]));
    EXPECT_EQ(outputs[0].floats[2], 3);
  }
}

TEST(Attention, ScratchHoldsABlockOfScoresPerThread) {
  const OpCase op_case = AttentionCase({.queries = 1000,
                                        .sources = 64,
                                        .heads = 4,
                                        .head_channels = 128,
                                        .lengths = std::vector<double>(10, 64.0)});
  const PreparedCase prepared(op_case);
  const auto bytes = [&](int threads) {
    return prepared.op.kernels()[0].scratch_bytes(prepared.call(), {.threads = threads});
  };
  // Scores (28, 64), queries (28, 128), packed keys and values.
  EXPECT_EQ(bytes(1), 4 * (28 * 64 + 28 * 128 + 2 * 64 * 128));
  EXPECT_EQ(bytes(1000), 40 * bytes(1));
}

TEST(Attention, RejectsWrongShapes) {
  const AttentionSetting setting{
      .queries = 3, .sources = 5, .heads = 2, .head_channels = 4, .lengths = {5, 1}};
  const auto with = [&](size_t input, const Shape& shape) {
    OpCase op_case = AttentionGradCase(setting);
    op_case.inputs[input] = shape;
    return op_case;
  };
  EXPECT_THAT(ShapeError(with(0, {2, 8})),
              HasSubstr("'q' has shape (2, 8), expected 3 dimensions"));
  EXPECT_THAT(ShapeError(with(1, {2, 8})), HasSubstr("expected 3 dimensions (B, S, C)"));
  EXPECT_THAT(ShapeError(with(1, {3, 5, 8})),
              HasSubstr("'k' has shape (3, 5, 8), expected (2, 5, 8)"));
  EXPECT_THAT(ShapeError(with(2, {2, 6, 8})),
              HasSubstr("'v' has shape (2, 6, 8), expected (2, 5, 8)"));
  EXPECT_THAT(ShapeError(with(3, {3})), HasSubstr("'lengths' has shape (3), expected (2)"));
  EXPECT_THAT(ShapeError(with(4, {2, 5, 8})), HasSubstr("'dy' has shape"));
}

TEST(Attention, RejectsWrongAttributesAndDraws) {
  AttentionSetting setting{.queries = 3, .sources = 5, .heads = 3, .lengths = {5, 1}};
  OpCase op_case = AttentionCase(setting);
  op_case.attributes.Set("heads", int64_t{0});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("heads is 0, expected at least 1"));
  op_case.attributes.Set("heads", int64_t{2});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("3 channels cannot be divided among 2 heads"));
  setting.rate = 0.5;
  op_case = AttentionCase(setting);
  op_case.inputs.resize(4);
  EXPECT_THAT(ShapeError(op_case), HasSubstr("got 4 inputs, expected 6"));
  setting.sources = 4097;
  EXPECT_THAT(ShapeError(AttentionCase(setting)),
              HasSubstr("got 4097 sources, dropout of probabilities takes at most 4096"));
  setting.sources = 5;
  setting.queries = int64_t{1} << 22;
  EXPECT_THAT(ShapeError(AttentionCase(setting)), HasSubstr("takes at most 4194304 of one"));
}

TEST(Attention, WithoutDropoutTakesMoreSources) {
  const AttentionSetting setting{.sources = 5000, .lengths = {5000}};
  const auto outputs =
      RunOp(AttentionCase(setting),
            {{{0}, {}}, {Floats(5000, 1.0F), {}}, {Floats(5000, 3.0F), {}}, {{}, {5000}}});
  EXPECT_NEAR(outputs[0].floats[0], 3, 1e-3);
}

}  // namespace
}  // namespace thimble
