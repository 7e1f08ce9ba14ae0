// token_cross_entropy and its gradient: kernels compared with references, known values, agreement
// with linear and softmax_cross_entropy, independence of the rest of the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/ops/logit_numbers.h"
#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"

namespace thimble {
namespace {

using testing::HasSubstr;

struct Tokens {
  int64_t sentences;
  int64_t positions;
  int64_t channels;
  int64_t words;
  int64_t padding = -1;
  double smoothing = 0.1;
  bool coarse = false;  // as in LogitNumbers
  uint64_t seed = 1;

  int64_t count() const { return sentences * positions; }
  Shape x() const { return {sentences, positions, channels}; }
  Shape w() const { return {words, channels}; }
  Shape targets() const { return {sentences, positions}; }

  std::vector<double> X() const { return LogitNumbers(seed, 0, count(), channels, coarse); }
  std::vector<double> W() const { return LogitNumbers(seed, 1, words, channels, coarse); }

  std::vector<double> LogSums() const {
    const auto rows = X();
    const auto columns = W();
    std::vector<double> sums;
    for (int64_t i = 0; i < count(); ++i) {
      double sum = 0;
      for (int64_t v = 0; v < words; ++v) {
        double logit = 0;
        for (int64_t c = 0; c < channels; ++c) {
          logit += rows[static_cast<size_t>(i * channels + c)] *
                   columns[static_cast<size_t>(v * channels + c)];
        }
        sum += std::exp(logit);
      }
      sums.push_back(std::log(sum));
    }
    return sums;
  }

  OpCase Forward() const {
    return {.op = "token_cross_entropy",
            .inputs = {x(), w(), targets()},
            .attributes = {{"padding", padding}, {"smoothing", smoothing}},
            .integer_bound = static_cast<int>(words),
            .given_inputs = {{0, X()}, {1, W()}},
            .shared_sum_size = static_cast<double>(words),
            // The reference rounds 1 + the exponentials of less likely words, and the logarithm of
            // that before it is added to the largest logit.
            .cancelled_size = 1};
  }
  OpCase Grad() const {
    return {.op = "token_cross_entropy_grad",
            .inputs = {x(), w(), targets(), targets(), Shape{1}},
            .attributes = {{"padding", padding}, {"smoothing", smoothing}},
            .integer_bound = static_cast<int>(words),
            .given_inputs = {{0, X()}, {1, W()}, {3, LogSums()}},
            // A probability of nearly 1 minus 1, times dloss and a number of w or x.
            .cancelled_size = 10};
  }
};

// Around the edges of slices of the vocabulary (224 words), chains and blocks of tokens (252 and
// 1,008), and depth blocks of the product (256).
const std::vector<Tokens> kTokenCases = {
    {1, 1, 1, 1},
    {2, 3, 4, 5},
    {1, 2, 3, 2, 0, 0},
    {0, 7, 3, 4},
    {3, 0, 3, 4, 1},
    {3, 5, 33, 223, 7},
    {4, 7, 300, 17, -1, 0.3},
    {2, 5, 16, 224, 3, 0},
    {1, 9, 520, 225, 224},
    {5, 3, 40, 700, 2},
    {23, 11, 5, 30, 4},
    {41, 25, 3, 20, -1, 0, true},
    {9, 56, 7, 229, 1},
    {20, 20, 2, 8, 1, 0.1, true},
};

Tokens RandomTokens(CaseDraw& draw) {
  const int64_t longest = draw.Between(0, 2);
  Tokens tokens{draw.Size(5), draw.Size(longest == 0 ? 120 : 5), draw.Size(longest == 1 ? 600 : 12),
                draw.Size(longest == 2 ? 500 : 24)};
  if (draw.OneIn(12)) tokens = {draw.Between(200, 300), 4, 2, 3};
  if (draw.OneIn(24)) (draw.OneIn(2) ? tokens.sentences : tokens.positions) = 0;
  tokens.padding = draw.Between(-1, std::min<int64_t>(tokens.words - 1, 3));
  tokens.smoothing = draw.OneIn(3) ? 0 : 0.99 * draw.Fraction();
  // Two almost equal largest logits would make `correct` a matter of rounding.
  tokens.coarse = tokens.count() > 20 || draw.OneIn(2);
  tokens.seed = draw.Word();
  return tokens;
}

}  // namespace

std::vector<OpCase> TokenCrossEntropyCases() {
  std::vector<OpCase> cases;
  for (const Tokens& tokens : kTokenCases) {
    cases.push_back(tokens.Forward());
    cases.push_back(tokens.Grad());
  }
  return cases;
}

OpCase Random_token_cross_entropy(CaseDraw& draw) { return RandomTokens(draw).Forward(); }
OpCase Random_token_cross_entropy_grad(CaseDraw& draw) { return RandomTokens(draw).Grad(); }

namespace {

// kTwoUnitTokens and kThreeWords.
OpCase TwoTokens(double smoothing, int64_t padding = -1) {
  return Tokens{1, 2, 2, 3, padding, smoothing}.Forward();
}
OpCase TwoTokensGrad(double smoothing, int64_t padding = -1) {
  return Tokens{1, 2, 2, 3, padding, smoothing}.Grad();
}

void ExpectTokenNumbers(const OpData& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.floats.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual.floats[i], expected[i], 2e-6) << "element " << i;
  }
}

TEST(TokenCrossEntropy, SumsOverTokens) {
  for (const auto& out : RunAllKernels(TwoTokens(0), {kTwoUnitTokens, kThreeWords, {{}, {2, 1}}})) {
    const float nll = (kLog8 - kLog5) + kLog8;
    ExpectTokenNumbers(out[0], {nll});
    ExpectTokenNumbers(out[1], {nll});
    EXPECT_EQ(out[2].integers[0], 1);
    ExpectTokenNumbers(out[3], {kLog8, kLog8});
  }
}

TEST(TokenCrossEntropy, SmoothingSpreadsATenth) {
  for (const auto& out :
       RunAllKernels(TwoTokens(0.1), {kTwoUnitTokens, kThreeWords, {{}, {2, 1}}})) {
    const float nll = (kLog8 - kLog5) + kLog8;
    const float all_words = 3 * kLog8 - kLog2 - kLog5;  // -log p summed, the same for both
    ExpectTokenNumbers(out[0], {0.9F * nll + 2 * 0.1F / 3 * all_words});
    ExpectTokenNumbers(out[1], {nll});
  }
}

TEST(TokenCrossEntropy, PaddingDoesNotCount) {
  for (const auto& out :
       RunAllKernels(TwoTokens(0, 1), {kTwoUnitTokens, kThreeWords, {{}, {2, 1}}})) {
    ExpectTokenNumbers(out[0], {kLog8 - kLog5});
    ExpectTokenNumbers(out[1], {kLog8 - kLog5});
    EXPECT_EQ(out[2].integers[0], 1);
    ExpectTokenNumbers(out[3], {kLog8, kLog8});
  }
}

TEST(TokenCrossEntropy, GradientOfTwoTokens) {
  const std::vector<OpData> in = {
      kTwoUnitTokens, kThreeWords, {{}, {2, 1}}, {{kLog8, kLog8}, {}}, {{2}, {}}};
  const float t1[] = {2 * (0.125F - 0.1F), 2 * (0.25F - 0.1F), 2 * (0.625F - 0.8F)};
  const float t2[] = {2 * (0.625F - 0.1F), 2 * (0.125F - 0.8F), 2 * (0.25F - 0.1F)};
  for (const auto& out : RunAllKernels(TwoTokensGrad(0.3), in)) {
    ExpectTokenNumbers(out[0], {t1[1] * kLog2 + t1[2] * kLog5, t1[0] * kLog5 + t1[2] * kLog2,
                                t2[1] * kLog2 + t2[2] * kLog5, t2[0] * kLog5 + t2[2] * kLog2});
    ExpectTokenNumbers(out[1], {t1[0], t2[0], t1[1], t2[1], t1[2], t2[2]});
  }
  for (const auto& out : RunAllKernels(TwoTokensGrad(0.3, 1), in)) {
    ExpectTokenNumbers(out[0],
                       {t1[1] * kLog2 + t1[2] * kLog5, t1[0] * kLog5 + t1[2] * kLog2, 0, 0});
    ExpectTokenNumbers(out[1], {t1[0], 0, t1[1], 0, t1[2], 0});
  }
}

TEST(TokenCrossEntropy, TargetOutOfRangeIsNan) {
  for (const int target : {-1, 3, INT_MAX, INT_MIN}) {
    for (const auto& out :
         RunAllKernels(TwoTokens(0.1), {kTwoUnitTokens, kThreeWords, {{}, {2, target}}})) {
      EXPECT_TRUE(std::isnan(out[0].floats[0])) << target;
      EXPECT_TRUE(std::isnan(out[1].floats[0])) << target;
      EXPECT_EQ(out[2].integers[0], 1) << target;
    }
    for (const auto& out : RunAllKernels(
             TwoTokensGrad(0.1),
             {kTwoUnitTokens, kThreeWords, {{}, {2, target}}, {{kLog8, kLog8}, {}}, {{1}, {}}})) {
      EXPECT_FALSE(std::isnan(out[0].floats[0])) << target;
      EXPECT_TRUE(std::isnan(out[0].floats[2])) << target;
      EXPECT_TRUE(std::isnan(out[1].floats[0])) << target;
    }
  }
}

TEST(TokenCrossEntropy, NanMakesTheLossNanAndTheTokenWrong) {
  for (const size_t word : {0, 1, 224, 299}) {
    std::vector<float> w(300, 0.0F);
    w[word] = NAN;
    w[5] = 1;
    const OpCase op_case = Tokens{1, 1, 1, 300}.Forward();
    for (const auto& out : RunAllKernels(op_case, {{{1}, {}}, {w, {}}, {{}, {5}}})) {
      EXPECT_TRUE(std::isnan(out[0].floats[0])) << word;
      EXPECT_TRUE(std::isnan(out[3].floats[0])) << word;
      EXPECT_EQ(out[2].integers[0], 0) << word;
    }
  }
}

TEST(TokenCrossEntropy, LargeLogitsDoNotOverflowAndTinyLossesStay) {
  std::vector<float> w(300, 0.0F);
  w[250] = 200;
  const OpCase op_case = Tokens{1, 2, 1, 300, -1, 0}.Forward();
  const auto out = RunOp(op_case, {{{1, 0.1F}, {}}, {w, {}}, {{}, {250, 250}}});
  EXPECT_NEAR(out[1].floats[0], 299 * std::exp(-20.0F), 1e-12F);
  EXPECT_EQ(out[3].floats[0], 200);
}

// The first of equal logits is the answer, also in another slice of the vocabulary.
TEST(TokenCrossEntropy, FirstOfEqualLogitsCounts) {
  std::vector<float> w(300, 0.0F);
  w[7] = w[9] = w[230] = 1;
  const OpCase op_case = Tokens{1, 3, 1, 300}.Forward();
  for (const auto& out : RunAllKernels(op_case, {{{1, 1, 1}, {}}, {w, {}}, {{}, {7, 9, 230}}})) {
    EXPECT_EQ(out[2].integers[0], 1);
  }
}

OpData SomeTargets(const Tokens& tokens) {
  OpData targets;
  for (int64_t i = 0; i < tokens.count(); ++i) {
    targets.integers.push_back(static_cast<int>((i * 37 + 5) % tokens.words));
  }
  return targets;
}

void ExpectCloseGradients(const OpData& actual, const OpData& expected) {
  ASSERT_EQ(actual.floats.size(), expected.floats.size());
  for (size_t i = 0; i < expected.floats.size(); ++i) {
    EXPECT_NEAR(actual.floats[i], expected.floats[i], 1e-5) << "element " << i;
  }
}

// Without smoothing: linear and softmax_cross_entropy with all logits in memory.
TEST(TokenCrossEntropy, AgreesWithLinearAndSoftmaxCrossEntropy) {
  const Tokens tokens{3, 7, 20, 500, -1, 0};
  const OpData x = FloatData(tokens.X());
  const OpData w = FloatData(tokens.W());
  const OpData targets = SomeTargets(tokens);
  const auto fused = RunOp(tokens.Forward(), {x, w, targets});
  const OpData dloss{{0.5F}, {}};
  const auto fused_grad = RunOp(tokens.Grad(), {x, w, targets, fused[3], dloss});

  const Shape rows{tokens.count(), tokens.channels};
  const Shape logit_shape{tokens.count(), tokens.words};
  const Shape labels{tokens.count()};
  const auto logits = RunOp({.op = "linear", .inputs = {rows, tokens.w()}}, {x, w})[0];
  const auto loss =
      RunOp({.op = "softmax_cross_entropy", .inputs = {logit_shape, labels}}, {logits, targets});
  EXPECT_NEAR(fused[0].floats[0], loss[0].floats[0], 1e-5F * loss[0].floats[0]);
  EXPECT_EQ(fused[0].floats[0], fused[1].floats[0]);
  EXPECT_EQ(fused[2].integers, loss[1].integers);
  const auto dlogits =
      RunOp({.op = "softmax_cross_entropy_grad", .inputs = {logit_shape, labels, Shape{1}}},
            {logits, targets, dloss})[0];
  ExpectCloseGradients(
      fused_grad[0], RunOp({.op = "linear_grad_input",
                            .inputs = {tokens.w(), logit_shape},
                            .attributes = {{"sample_dims", std::vector<int64_t>{tokens.channels}}}},
                           {w, dlogits})[0]);
  ExpectCloseGradients(
      fused_grad[1],
      RunOp({.op = "linear_grad_weight", .inputs = {rows, logit_shape}}, {x, dlogits})[0]);
}

// What belongs to a token has the same bits in any part of the batch.
TEST(TokenCrossEntropy, TokensDoNotDependOnTheBatch) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const Tokens whole{30, 10, 600, 300};
    const auto x = FloatData(whole.X()).floats;
    const OpData w = FloatData(whole.W());
    const auto targets = SomeTargets(whole).integers;
    const auto run = [&](int64_t first, int64_t sentences) {
      Tokens part{sentences, 10, 600, 300};
      const int64_t begin = first * 10;
      const int64_t end = begin + part.count();
      const OpData rows{SliceOf(x, begin * 600, end * 600), {}};
      const OpData words{{}, SliceOf(targets, begin, end)};
      OpCase forward = part.Forward();
      OpCase grad = part.Grad();
      forward.number_types = grad.number_types = {type};
      const auto out = RunOp(forward, {rows, w, words});
      const auto gradient = RunOp(grad, {rows, w, words, out[3], {{1}, {}}});
      return std::pair(out[3].floats, gradient[0].floats);
    };
    const auto all = run(0, 30);
    for (const auto& [first, sentences] : {std::pair<int64_t, int64_t>{0, 1}, {0, 27}, {27, 3}}) {
      const auto [log_sums, dx] = run(first, sentences);
      const int64_t begin = first * 10;
      const int64_t end = begin + sentences * 10;
      EXPECT_EQ(log_sums, SliceOf(all.first, begin, end));
      EXPECT_EQ(dx, SliceOf(all.second, begin * 600, end * 600));
    }
  }
}

// In the size of a translation model, whose logits would take 106 MB.
TEST(TokenCrossEntropy, ScratchStaysSmall) {
  for (const DType type : {DType::kF32, DType::kF16}) {
    OpCase forward{.op = "token_cross_entropy", .inputs = {{160, 25, 512}, {6632, 512}, {160, 25}}};
    OpCase grad{.op = "token_cross_entropy_grad",
                .inputs = {{160, 25, 512}, {6632, 512}, {160, 25}, {160, 25}, {1}}};
    forward.number_types = grad.number_types = {type};
    for (const int threads : {1, 2, 4}) {
      constexpr size_t kMiB = size_t{1} << 20;
      const size_t limit = static_cast<size_t>(threads) * kMiB;
      EXPECT_LE(ScratchOf(forward, {threads, kMiB}), limit);
      EXPECT_LE(ScratchOf(grad, {threads, kMiB}), limit);
      EXPECT_LE(ScratchOf(forward, {threads, 64 * kMiB}), 2 * kMiB);
      EXPECT_LE(ScratchOf(grad, {threads, 64 * kMiB}), 6 * kMiB);
      EXPECT_LE(ScratchOf(forward, {threads, kMiB / 16}), kMiB / 4);
      EXPECT_LE(ScratchOf(grad, {threads, kMiB / 16}), kMiB);
    }
  }
}

TEST(TokenCrossEntropy, WrongUseSaysWhy) {
  const Tokens good{2, 3, 4, 5};
  const auto with_input = [](OpCase op_case, size_t input, Shape shape) {
    op_case.inputs[input] = shape;
    return ShapeError(op_case);
  };
  EXPECT_THAT(with_input(good.Forward(), 0, {6, 4}), HasSubstr("expected 3 dimensions (B, T, C)"));
  EXPECT_THAT(with_input(good.Forward(), 1, {5, 3}), HasSubstr("'w' has shape (5, 3)"));
  EXPECT_THAT(with_input(good.Forward(), 1, {5, 4, 1}), HasSubstr("expected 2 dimensions (V, C)"));
  EXPECT_THAT(with_input(good.Forward(), 2, {6}), HasSubstr("'targets' has shape (6)"));
  EXPECT_THAT(with_input(good.Grad(), 3, {3, 2}), HasSubstr("'log_sums' has shape (3, 2)"));
  EXPECT_THAT(with_input(good.Grad(), 4, {2}), HasSubstr("'dloss' has shape (2)"));
  EXPECT_THAT(ShapeError(Tokens{2, 3, 4, 0}.Forward()),
              HasSubstr("vocabulary is 0, expected at least 1"));
  EXPECT_THAT(ShapeError(Tokens{2, 3, 4, 5, 5}.Forward()),
              HasSubstr("padding is 5, expected a word below 5 or -1"));
  EXPECT_THAT(ShapeError(Tokens{2, 3, 4, 5, -2}.Grad()), HasSubstr("padding is -2"));
  EXPECT_THAT(ShapeError(Tokens{2, 3, 4, 5, -1, 1}.Forward()), HasSubstr("smoothing is 1"));
  EXPECT_THAT(ShapeError(Tokens{2, 3, 4, 5, -1, NAN}.Grad()), HasSubstr("smoothing is nan"));
}

}  // namespace
}  // namespace thimble
