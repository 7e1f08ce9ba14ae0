// top_words: kernels compared with the formula, known values, agreement with linear, independence
// of the rest of the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/ops/logit_numbers.h"
#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/tolerance.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;
using Integers = std::vector<int>;

struct WordSetting {
  int64_t sentences = 1;
  int64_t hypotheses = 1;
  int64_t channels = 1;
  int64_t words = 1;
  int64_t count = 1;
  int64_t first_word = 0;
  int64_t end = 0;
  bool coarse = false;  // as in LogitNumbers
  uint64_t seed = 1;

  int64_t rows() const { return sentences * hypotheses; }
  std::vector<double> X() const { return LogitNumbers(seed, 0, rows(), channels, coarse); }
  std::vector<double> W() const { return LogitNumbers(seed, 1, words, channels, coarse); }

  OpCase Case() const {
    return {.op = "top_words",
            .inputs = {{sentences, hypotheses, channels}, {words, channels}},
            .attributes = {{"count", count}, {"first_word", first_word}, {"end", end}},
            .given_inputs = {{0, X()}, {1, W()}},
            // As in token_cross_entropy.
            .shared_sum_size = static_cast<double>(words),
            .cancelled_size = 1};
  }
};

// Around the edges of slices of the vocabulary (224 words), blocks of tokens (1,008) and depth
// blocks of the product (256).
std::vector<WordSetting> WordSettings() {
  return {
      {},
      {.hypotheses = 4, .channels = 3, .words = 5, .count = 3, .first_word = 2, .end = 2},
      {.hypotheses = 2, .channels = 3, .words = 6, .count = 6, .end = 5},
      {.sentences = 0, .hypotheses = 4, .channels = 3, .words = 5, .count = 2},
      {.sentences = 4, .hypotheses = 0, .channels = 3, .words = 5, .count = 2},
      {.sentences = 2, .hypotheses = 5, .channels = 33, .words = 223, .count = 10, .end = 222},
      {.sentences = 3, .hypotheses = 2, .channels = 16, .words = 224, .count = 8, .first_word = 2},
      {.hypotheses = 3, .channels = 520, .words = 225, .count = 1, .first_word = 224, .end = 224},
      {.hypotheses = 3, .channels = 40, .words = 700, .count = 9, .first_word = 300, .end = 2},
      {.hypotheses = 2, .channels = 7, .words = 900, .count = 500, .first_word = 3, .coarse = true},
      {.sentences = 30, .hypotheses = 9, .channels = 20, .words = 30, .count = 8, .coarse = true},
      {.sentences = 41, .hypotheses = 25, .channels = 2, .words = 8, .count = 4, .coarse = true},
  };
}

}  // namespace

std::vector<OpCase> TopWordsCases() {
  std::vector<OpCase> cases;
  for (const WordSetting& setting : WordSettings()) cases.push_back(setting.Case());
  return cases;
}

// Coarse: otherwise rounding would decide between two almost equal logits.
OpCase Random_top_words(CaseDraw& draw) {
  const int64_t longest = draw.Between(0, 2);
  WordSetting setting{.sentences = draw.Size(5),
                      .hypotheses = draw.Size(longest == 0 ? 60 : 5),
                      .channels = draw.Size(longest == 1 ? 600 : 12),
                      .words = draw.Size(longest == 2 ? 700 : 24),
                      .coarse = true};
  if (draw.OneIn(12))
    setting = {.sentences = 200, .hypotheses = 5, .channels = 2, .words = 3, .coarse = true};
  if (draw.OneIn(24)) (draw.OneIn(2) ? setting.sentences : setting.hypotheses) = 0;
  setting.first_word = draw.OneIn(3) ? draw.Between(0, setting.words - 1) : 0;
  const int64_t candidates = setting.words - setting.first_word;
  setting.count = draw.Between(1, draw.OneIn(4) ? candidates : std::min<int64_t>(10, candidates));
  setting.end = draw.Between(0, setting.words - 1);
  setting.seed = draw.Word();
  return setting.Case();
}

namespace {

void ExpectLogs(const OpData& actual, const Floats& probabilities) {
  ASSERT_EQ(actual.floats.size(), probabilities.size());
  for (size_t i = 0; i < probabilities.size(); ++i) {
    EXPECT_NEAR(actual.floats[i], std::log(probabilities[i]), 2e-6) << "element " << i;
  }
}

// The logits of two hypotheses are (0, log 2, log 5) and (log 5, 0, log 2).
TEST(TopWords, LikeliestFirst) {
  const WordSetting setting{
      .hypotheses = 2, .channels = 2, .words = 3, .count = 2, .first_word = 0, .end = 1};
  for (const auto& out : RunAllKernels(setting.Case(), {kTwoUnitTokens, kThreeWords})) {
    EXPECT_EQ(out[0].integers, (Integers{2, 1, 0, 2}));
    ExpectLogs(out[1], {5.0F / 8, 2.0F / 8, 5.0F / 8, 2.0F / 8});
    ExpectLogs(out[2], {2.0F / 8, 1.0F / 8});
  }
}

// Words below first_word are no candidates, but have their share of the probability.
TEST(TopWords, SoftmaxIsOverTheWholeVocabulary) {
  const WordSetting setting{
      .hypotheses = 2, .channels = 2, .words = 3, .count = 2, .first_word = 1, .end = 0};
  for (const auto& out : RunAllKernels(setting.Case(), {kTwoUnitTokens, kThreeWords})) {
    EXPECT_EQ(out[0].integers, (Integers{2, 1, 2, 1}));
    ExpectLogs(out[1], {5.0F / 8, 2.0F / 8, 2.0F / 8, 1.0F / 8});
    ExpectLogs(out[2], {1.0F / 8, 5.0F / 8});
  }
}

// In one slice of the vocabulary and in several, where the list is full and where it is not.
TEST(TopWords, SmallerWordFirstIfEquallyLikely) {
  Floats w(500, 0.0F);
  w[7] = w[9] = w[230] = w[499] = 1;
  w[300] = 2;
  const WordSetting setting{.words = 500, .count = 7, .first_word = 2};
  for (const auto& out : RunAllKernels(setting.Case(), {{{1}, {}}, {w, {}}})) {
    EXPECT_EQ(out[0].integers, (Integers{300, 7, 9, 230, 499, 2, 3}));
  }
}

TEST(TopWords, LargeLogitsDoNotOverflow) {
  Floats w(300, 0.0F);
  w[250] = 2000;
  w[3] = 1990;
  const WordSetting setting{.words = 300, .count = 3};
  for (const auto& out : RunAllKernels(setting.Case(), {{{1}, {}}, {w, {}}})) {
    EXPECT_EQ(out[0].integers, (Integers{250, 3, 0}));
    // The reference rounds 1 + the exponential.
    EXPECT_NEAR(out[1].floats[0], -std::log1p(std::exp(-10.0)), kFloatRounding);
    EXPECT_FLOAT_EQ(out[1].floats[1], static_cast<float>(-10 - std::log1p(std::exp(-10.0))));
    EXPECT_FLOAT_EQ(out[2].floats[0], -2000);
  }
}

TEST(TopWords, TinyLogProbabilitiesStay) {
  Floats w(300, 0.0F);
  w[250] = 20;
  const auto out = RunOp(WordSetting{.words = 300, .count = 1}.Case(), {{{1}, {}}, {w, {}}});
  EXPECT_NEAR(out[1].floats[0], -299 * std::exp(-20.0), 1e-12);
}

TEST(TopWords, WithoutSoftmaxTheFirstWordsHaveNan) {
  const WordSetting setting{.words = 300, .count = 4, .first_word = 3, .end = 2};
  for (const float bad : {NAN, INFINITY}) {
    for (const size_t word : {0, 2, 4, 223, 224, 299}) {
      Floats w(300);
      for (size_t v = 0; v < w.size(); ++v) w[v] = static_cast<float>(v % 50);
      w[word] = bad;
      for (const auto& out : RunAllKernels(setting.Case(), {{{1}, {}}, {w, {}}})) {
        EXPECT_EQ(out[0].integers, (Integers{3, 4, 5, 6})) << bad << " at " << word;
        for (const float log : out[1].floats) EXPECT_TRUE(std::isnan(log)) << bad << " at " << word;
        EXPECT_TRUE(std::isnan(out[2].floats[0])) << bad << " at " << word;
      }
    }
  }
}

TEST(TopWords, NanStaysWithItsHypothesis) {
  const WordSetting setting{.hypotheses = 3, .channels = 2, .words = 3, .count = 2};
  for (const auto& out : RunAllKernels(setting.Case(), {{{1, 0, NAN, 0, 0, 1}, {}}, kThreeWords})) {
    EXPECT_EQ(out[0].integers, (Integers{2, 1, 0, 1, 0, 2}));
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(out[1].floats[i]), i / 2 == 1) << i;
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(std::isnan(out[2].floats[i]), i == 1) << i;
  }
}

// A word that can never come is the last candidate.
TEST(TopWords, ImpossibleWordsComeLast) {
  const WordSetting setting{.words = 4, .count = 4, .end = 1};
  for (const auto& out :
       RunAllKernels(setting.Case(), {{{1}, {}}, {{-INFINITY, -INFINITY, 0, 0}, {}}})) {
    EXPECT_EQ(out[0].integers, (Integers{2, 3, 0, 1}));
    ExpectLogs({SliceOf(out[1].floats, 0, 2), {}}, {0.5F, 0.5F});
    EXPECT_EQ(SliceOf(out[1].floats, 2, 4), (Floats{-INFINITY, -INFINITY}));
    EXPECT_EQ(out[2].floats, Floats{-INFINITY});
  }
}

// With all logits in memory.
TEST(TopWords, AgreesWithSortedLogitsOfLinear) {
  const WordSetting setting{
      .sentences = 2, .hypotheses = 5, .channels = 64, .words = 1000, .count = 8, .first_word = 2};
  const OpData x = FloatData(setting.X());
  const OpData w = FloatData(setting.W());
  const auto out = RunOp(setting.Case(), {x, w});
  const auto logits = RunOp({.op = "linear", .inputs = {{10, 64}, {1000, 64}}}, {x, w})[0].floats;
  for (int64_t row = 0; row < 10; ++row) {
    const Floats numbers = SliceOf(logits, row * 1000, (row + 1) * 1000);
    double sum = 0;
    for (const float logit : numbers) sum += std::exp(static_cast<double>(logit));
    Integers words(998);
    std::iota(words.begin(), words.end(), 2);
    std::ranges::stable_sort(words, std::ranges::greater(),
                             [&](int word) { return numbers[static_cast<size_t>(word)]; });
    for (int64_t k = 0; k < 8; ++k) {
      const auto place = static_cast<size_t>(row * 8 + k);
      const int word = words[static_cast<size_t>(k)];
      EXPECT_EQ(out[0].integers[place], word) << row << ", " << k;
      EXPECT_NEAR(out[1].floats[place], numbers[static_cast<size_t>(word)] - std::log(sum), 1e-5);
    }
    EXPECT_NEAR(out[2].floats[static_cast<size_t>(row)], numbers[0] - std::log(sum), 1e-5);
  }
}

// What belongs to a hypothesis has the same bits in any part of the batch.
TEST(TopWords, HypothesesDoNotDependOnTheBatch) {
  const WordSetting whole{
      .sentences = 30, .hypotheses = 9, .channels = 600, .words = 300, .count = 7, .end = 2};
  const auto x = FloatData(whole.X()).floats;
  const OpData w = FloatData(whole.W());
  for (const DType type : {DType::kF32, DType::kBF16}) {
    const auto run = [&](int64_t first, int64_t sentences) {
      WordSetting part = whole;
      part.sentences = sentences;
      OpCase op_case = part.Case();
      op_case.number_types = {type};
      return RunOp(op_case, {{SliceOf(x, first * 5400, (first + sentences) * 5400), {}}, w});
    };
    const auto all = run(0, 30);
    for (const auto& [first, sentences] : {std::pair<int64_t, int64_t>{0, 1}, {0, 27}, {27, 3}}) {
      const auto out = run(first, sentences);
      const int64_t begin = first * 9;
      const int64_t end = begin + sentences * 9;
      EXPECT_EQ(out[0].integers, SliceOf(all[0].integers, begin * 7, end * 7));
      EXPECT_EQ(out[1].floats, SliceOf(all[1].floats, begin * 7, end * 7));
      EXPECT_EQ(out[2].floats, SliceOf(all[2].floats, begin, end));
    }
  }
}

// In the size of a translation model, whose logits would take 6.8 MB.
TEST(TopWords, ScratchStaysSmall) {
  for (const DType type : {DType::kF32, DType::kF16}) {
    OpCase op_case{.op = "top_words", .inputs = {{64, 4, 512}, {6632, 512}}};
    op_case.attributes = {{"count", int64_t{8}}};
    op_case.number_types = {type};
    for (const int threads : {1, 2, 4}) {
      constexpr size_t kMiB = size_t{1} << 20;
      EXPECT_LE(ScratchOf(op_case, {threads, kMiB}), static_cast<size_t>(threads) * kMiB);
      EXPECT_LE(ScratchOf(op_case, {threads, 64 * kMiB}), 2 * kMiB);
      EXPECT_LE(ScratchOf(op_case, {threads, kMiB / 16}), kMiB / 4);
    }
  }
}

TEST(TopWords, WrongUseSaysWhy) {
  const WordSetting good{.hypotheses = 3, .channels = 4, .words = 5, .count = 2, .first_word = 2};
  const auto with_input = [&](size_t input, const Shape& shape) {
    OpCase op_case = good.Case();
    op_case.inputs[input] = shape;
    return ShapeError(op_case);
  };
  const auto with_attribute = [&](const std::string& name, int64_t value) {
    OpCase op_case = good.Case();
    op_case.attributes.Set(name, value);
    return ShapeError(op_case);
  };
  EXPECT_THAT(with_input(0, {3, 4}), HasSubstr("expected 3 dimensions (B, N, C)"));
  EXPECT_THAT(with_input(1, {5, 4, 1}), HasSubstr("expected 2 dimensions (V, C)"));
  EXPECT_THAT(with_input(1, {5, 3}), HasSubstr("'w' has shape (5, 3), expected (5, 4)"));
  EXPECT_THAT(with_input(1, {0, 4}), HasSubstr("vocabulary is 0, expected at least 1"));
  EXPECT_THAT(with_attribute("count", 0), HasSubstr("count is 0, expected at least 1"));
  EXPECT_THAT(with_attribute("count", 4),
              HasSubstr("count is 4, expected at most 3: 5 words, the first 2 excluded"));
  EXPECT_THAT(with_attribute("count", INT64_MAX), HasSubstr("expected at most 3"));
  EXPECT_THAT(with_attribute("first_word", -1), HasSubstr("first_word is -1, expected at least 0"));
  EXPECT_THAT(with_attribute("first_word", INT64_MAX), HasSubstr("expected at most 0"));
  for (const int64_t end : {-1, 5}) {
    EXPECT_THAT(with_attribute("end", end), HasSubstr("expected a word below 5"));
  }
}

}  // namespace
}  // namespace thimble
