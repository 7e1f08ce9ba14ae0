// dynamic_conv_step: kernels compared with the formula, known values, and the same bits as
// dynamic_conv on the whole path of each hypothesis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>

#include "tests/ops/sentences.h"
#include "tests/ops/tap_weights.h"
#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

struct StepSetting {
  int64_t sentences = 1;
  int64_t hypotheses = 1;
  int64_t heads = 1;
  int64_t head_channels = 1;
  int64_t taps = 2;
  int64_t more_ancestors = 0;  // than the taps need
  int64_t step = 0;

  int64_t rows() const { return sentences * hypotheses; }
  int64_t channels() const { return heads * head_channels; }
  Shape X() const { return {sentences, hypotheses, channels()}; }
  Shape Logits() const { return {sentences, hypotheses, heads * taps}; }
  Shape History() const { return {taps - 1, sentences, hypotheses, channels()}; }
  Shape Ancestors() const { return {sentences, hypotheses, taps - 1 + more_ancestors}; }

  OpCase Case() const {
    return {.op = "dynamic_conv_step",
            .inputs = {X(), Logits(), History(), Ancestors(), Shape{1}},
            .attributes = {{"heads", heads}},
            .integer_bound = static_cast<int>(std::max<int64_t>(1, hypotheses)),
            .given_inputs = {{4, {static_cast<double>(step)}}},
            // As in dynamic_conv.
            .shared_sum_size = static_cast<double>(8 * taps)};
  }
};

// Around the edges of vectors; before, at and after the position at which the history is full.
std::vector<StepSetting> StepSettings() {
  std::vector<StepSetting> settings = {
      {},
      {.hypotheses = 3, .step = 1},
      {.sentences = 3, .hypotheses = 4, .heads = 2, .head_channels = 70, .taps = 15, .step = 40},
      {.sentences = 2, .hypotheses = 5, .heads = 4, .head_channels = 128, .taps = 31, .step = 29},
      {.sentences = 2, .hypotheses = 2, .head_channels = 17, .more_ancestors = 3, .step = INT_MAX},
      {.hypotheses = 2, .heads = 3, .head_channels = 9, .taps = 4, .step = -7},
      {.sentences = 0, .hypotheses = 2, .taps = 3, .step = 5},
      {.sentences = 2, .hypotheses = 0, .taps = 3, .step = 5},
      {.sentences = 2, .hypotheses = 3, .head_channels = 0, .taps = 3, .step = 5},
  };
  for (const int64_t step : {0, 1, 5, 6, 7, 8}) {
    settings.push_back({.sentences = 2,
                        .hypotheses = 3,
                        .heads = 2,
                        .head_channels = 19,
                        .taps = 7,
                        .more_ancestors = 2,
                        .step = step});
  }
  return settings;
}

StepSetting RandomStep(CaseDraw& draw) {
  StepSetting setting{.heads = draw.Size(5),
                      .head_channels = draw.OneIn(24) ? 0 : draw.Size(140),
                      .taps = 1 + draw.Size(33),
                      .more_ancestors = draw.OneIn(2) ? 0 : draw.Size(9)};
  // About 10^6 products at most.
  const int64_t most = std::clamp<int64_t>(
      1'000'000 / std::max<int64_t>(1, setting.channels() * setting.taps), 1, 9);
  setting.hypotheses = draw.OneIn(24) ? 0 : draw.Between(1, most);
  setting.sentences =
      draw.OneIn(24) ? 0 : draw.Size(most / std::max<int64_t>(1, setting.hypotheses) + 1);
  setting.step =
      draw.OneIn(12) ? draw.Between(INT_MIN, INT_MAX) : draw.Between(-1, 3 * setting.taps);
  return setting;
}

}  // namespace

std::vector<OpCase> DynamicConvStepCases() {
  std::vector<OpCase> cases;
  for (const StepSetting& setting : StepSettings()) cases.push_back(setting.Case());
  return cases;
}

// Some ancestors are out of range.
OpCase Random_dynamic_conv_step(CaseDraw& draw) {
  OpCase op_case = RandomStep(draw).Case();
  if (draw.OneIn(4)) ++op_case.integer_bound;
  return op_case;
}

namespace {

// Three taps, two hypotheses; at position 4 slot 1 has position 3, slot 0 position 2.
TEST(DynamicConvStep, TapsReachTheAncestorsAtTheirPositions) {
  const StepSetting setting{.hypotheses = 2, .taps = 3, .step = 4};
  const OpData logits{LogitsOf({0.5F, 0.25F, 0.25F, 0.125F, 0.375F, 0.5F}), {}};
  const OpData history{{1, 2, 10, 20}, {}};
  for (const auto& outputs : RunAllKernels(
           setting.Case(), {{{100, 200}, {}}, logits, history, {{}, {1, 0, 1, 1}}, {{}, {4}}})) {
    // Hypothesis 0: position 2 of hypothesis 0, position 3 of hypothesis 1. Hypothesis 1: both
    // of 1.
    ExpectFloats(outputs[0].floats,
                 {0.5F * 1 + 0.25F * 20 + 25, 0.125F * 2 + 0.375F * 20 + 0.5F * 200});
    ExpectFloats(outputs[1].floats, {100, 200, 10, 20});
  }
}

// Positions before 0 take their share of softmax, but their slots and ancestors are not read.
TEST(DynamicConvStep, PositionsBeforeTheFirstCountAsZero) {
  const StepSetting setting{.taps = 4};
  const OpData logits{LogitsOf({0.125F, 0.125F, 0.25F, 0.5F}), {}};
  const auto run = [&](int step, const Floats& history, const std::vector<int>& ancestors) {
    return RunAllKernels(setting.Case(),
                         {{{8}, {}}, logits, {history, {}}, {{}, ancestors}, {{}, {step}}});
  };
  for (const int step : {0, -1, INT_MIN}) {
    for (const auto& outputs : run(step, {NAN, 7, 9}, {-5, 1, INT_MAX})) {
      ExpectFloats(outputs[0].floats, {4});
      ExpectFloats(outputs[1].floats, {8, 7, 9});
    }
  }
  for (const auto& outputs : run(2, {100, 1000, NAN}, {0, 0, 99})) {
    ExpectFloats(outputs[0].floats, {0.125F * 100 + 250 + 4});
    ExpectFloats(outputs[1].floats, {100, 1000, 8});
  }
}

TEST(DynamicConvStep, AncestorOutOfRangeMakesItsHypothesisNan) {
  const StepSetting setting{.sentences = 2, .hypotheses = 2, .taps = 3, .step = 9};
  const OpData logits{Floats(12, 0.0F), {}};
  const OpData history{Floats(8, 1.0F), {}};
  for (const int wrong : {-1, 2, INT_MAX, INT_MIN}) {
    for (size_t place = 0; place < 8; ++place) {
      std::vector<int> ancestors(8, 1);
      ancestors[place] = wrong;
      for (const auto& outputs : RunAllKernels(
               setting.Case(), {{{1, 2, 3, 4}, {}}, logits, history, {{}, ancestors}, {{}, {9}}})) {
        for (size_t row = 0; row < 4; ++row) {
          EXPECT_EQ(std::isnan(outputs[0].floats[row]), row == place / 2) << wrong << ", " << row;
        }
        EXPECT_EQ(outputs[1].floats, (Floats{1, 1, 1, 1, 1, 2, 3, 4}));
      }
    }
  }
}

// A search of some steps: the numbers of every hypothesis at every position, and whom it continues.
class BeamSearch {
 public:
  // reorders: each hypothesis continues a random one; otherwise itself.
  BeamSearch(const StepSetting& setting, int64_t positions, bool reorders) : setting_(setting) {
    CaseDraw draw(5, "beam search", 0);
    for (int64_t t = 0; t < positions; ++t) {
      const auto stream = static_cast<uint32_t>(2 * t);
      x_.push_back(Draw(setting.X(), stream));
      logits_.push_back(Draw(setting.Logits(), stream + 1));
      std::vector<int> parents;
      for (int64_t row = 0; row < setting.rows(); ++row) {
        const int64_t itself = row % setting.hypotheses;
        parents.push_back(
            static_cast<int>(reorders ? draw.Between(0, setting.hypotheses - 1) : itself));
      }
      parents_.push_back(parents);
    }
  }

  // y of each position, one step after the other.
  std::vector<Floats> Steps(const OpRunner& run, DType type) const {
    std::vector<Floats> y;
    OpData history{Floats(static_cast<size_t>(setting_.History().elements()), NAN), {}};
    for (size_t t = 0; t < x_.size(); ++t) {
      OpCase op_case = setting_.Case();
      op_case.number_types = {type};
      const auto outputs = run(op_case, {{x_[t], {}},
                                         {logits_[t], {}},
                                         history,
                                         {{}, AncestorsAt(t)},
                                         {{}, {static_cast<int>(t)}}});
      y.push_back(outputs[0].floats);
      history = outputs[1];
    }
    return y;
  }

  // y at position t of dynamic_conv on the path of each hypothesis up to there.
  Floats WholePaths(const OpRunner& run, DType type, size_t t) const {
    const auto length = static_cast<int64_t>(t) + 1;
    const auto rows = setting_.rows();
    OpCase op_case{.op = "dynamic_conv",
                   .inputs = {{rows, length, setting_.channels()},
                              {rows, length, setting_.heads * setting_.taps},
                              Shape{rows}},
                   .attributes = {{"heads", setting_.heads}, {"causal", int64_t{1}}},
                   .number_types = {type}};
    const auto y =
        run(op_case,
            {{Paths(x_, t, setting_.channels()), {}},
             {Paths(logits_, t, setting_.heads * setting_.taps), {}},
             {{}, std::vector<int>(static_cast<size_t>(rows), static_cast<int>(length))}})[0]
            .floats;
    Floats last;
    for (int64_t row = 1; row <= rows; ++row) {
      const auto end = y.begin() + row * length * setting_.channels();
      last.insert(last.end(), end - setting_.channels(), end);
    }
    return last;
  }

 private:
  static Floats Draw(const Shape& shape, uint32_t stream) {
    const auto numbers = RandomNormals(11, stream, static_cast<size_t>(shape.elements()));
    return {numbers.begin(), numbers.end()};
  }
  // The hypothesis at position t - back that hypothesis `row` (of all sentences) continues.
  int Ancestor(size_t t, int64_t row, size_t back) const {
    const int64_t first = row / setting_.hypotheses * setting_.hypotheses;
    auto ancestor = static_cast<int>(row - first);
    for (size_t i = 0; i < back; ++i)
      ancestor = parents_[t - i][static_cast<size_t>(first + ancestor)];
    return ancestor;
  }
  // Those before the first position are out of range.
  std::vector<int> AncestorsAt(size_t t) const {
    std::vector<int> ancestors;
    for (int64_t row = 0; row < setting_.rows(); ++row) {
      for (int64_t d = 0; d < setting_.Ancestors()[2]; ++d) {
        const auto back = static_cast<size_t>(d + 1);
        ancestors.push_back(back <= t ? Ancestor(t, row, back) : -1);
      }
    }
    return ancestors;
  }
  // (rows, t + 1, width), from an array (rows, width) for each position.
  Floats Paths(const std::vector<Floats>& arrays, size_t t, int64_t width) const {
    Floats paths;
    for (int64_t row = 0; row < setting_.rows(); ++row) {
      const int64_t first = row / setting_.hypotheses * setting_.hypotheses;
      for (size_t s = 0; s <= t; ++s) {
        const auto begin = arrays[s].begin() + (first + Ancestor(t, row, t - s)) * width;
        paths.insert(paths.end(), begin, begin + width);
      }
    }
    return paths;
  }

  StepSetting setting_;
  std::vector<Floats> x_;
  std::vector<Floats> logits_;
  std::vector<std::vector<int>> parents_;
};

void ExpectBitsOfDynamicConv(const OpRunner& run, bool reorders, DType type = DType::kF32) {
  constexpr int64_t kPositions = 14;
  for (const auto& [taps, head_channels] : {std::pair<int64_t, int64_t>{2, 5}, {5, 69}, {15, 21}}) {
    const BeamSearch search({.sentences = 2,
                             .hypotheses = 3,
                             .heads = 2,
                             .head_channels = head_channels,
                             .taps = taps,
                             .more_ancestors = taps % 3},
                            kPositions, reorders);
    const auto steps = search.Steps(run, type);
    for (size_t t = 0; t < steps.size(); ++t) {
      EXPECT_TRUE(HaveSameFloatBits(steps[t], search.WholePaths(run, type, t)))
          << taps << " taps, position " << t;
    }
  }
}

TEST(DynamicConvStepBits, StepByStepAsTheWholeSentence) {
  ForEachKernelAndTarget([](const OpRunner& run) { ExpectBitsOfDynamicConv(run, false); });
}

TEST(DynamicConvStepBits, EachHypothesisAsItsWholePath) {
  ForEachKernelAndTarget([](const OpRunner& run) { ExpectBitsOfDynamicConv(run, true); });
}

TEST(DynamicConvStepBits, AlsoInSixteenBits) {
  const OpRunner run = [](const OpCase& op_case, const std::vector<OpData>& data) {
    return RunOp(op_case, data);
  };
  for (const DType type : {DType::kF16, DType::kBF16}) ExpectBitsOfDynamicConv(run, true, type);
}

TEST(DynamicConvStep, ScratchHoldsOneHeadPerThread) {
  const auto bytes = [](DType type, int threads) {
    OpCase op_case =
        StepSetting{.sentences = 64, .hypotheses = 4, .heads = 4, .head_channels = 128, .taps = 31}
            .Case();
    op_case.number_types = {type};
    const PreparedCase prepared(op_case);
    return prepared.op.kernels()[0].scratch_bytes(prepared.call(), {.threads = threads});
  };
  EXPECT_EQ(bytes(DType::kF32, 1), 4 * 32);
  EXPECT_EQ(bytes(DType::kF16, 1), 4 * (32 + 2 * 128));
  EXPECT_EQ(bytes(DType::kF16, 3), 3 * bytes(DType::kF16, 1));
  EXPECT_EQ(bytes(DType::kF32, 1000), 256 * bytes(DType::kF32, 1));
}

TEST(DynamicConvStep, RejectsWrongShapes) {
  const StepSetting setting{
      .sentences = 2, .hypotheses = 3, .heads = 2, .head_channels = 4, .taps = 3};
  const auto error_with = [&](size_t input, const Shape& shape) {
    OpCase op_case = setting.Case();
    op_case.inputs[input] = shape;
    return ShapeError(op_case);
  };
  EXPECT_THAT(error_with(0, {6, 8}), HasSubstr("'x' has shape (6, 8), expected 3 dimensions"));
  EXPECT_THAT(error_with(0, {2, 3, 9}), HasSubstr("9 channels cannot be divided among 2 heads"));
  EXPECT_THAT(error_with(1, {2, 3}), HasSubstr("expected 3 dimensions (B, N, H * K)"));
  EXPECT_THAT(error_with(1, {2, 4, 6}), HasSubstr("'logits' has shape (2, 4, 6), expected"));
  EXPECT_THAT(error_with(1, {2, 3, 7}), HasSubstr("expected one or more taps for each of 2 heads"));
  EXPECT_THAT(error_with(1, {2, 3, 2}), HasSubstr("number of taps is 1, expected at least 2"));
  EXPECT_THAT(error_with(2, {3, 2, 3, 8}),
              HasSubstr("'history' has shape (3, 2, 3, 8), expected (2, 2, 3, 8)"));
  EXPECT_THAT(error_with(3, {2, 6}), HasSubstr("expected 3 dimensions (B, N, P)"));
  EXPECT_THAT(error_with(3, {3, 2, 2}),
              HasSubstr("'ancestors' has shape (3, 2, 2), expected (2, 3, 2)"));
  EXPECT_THAT(
      error_with(3, {2, 3, 1}),
      HasSubstr("'ancestors' has shape (2, 3, 1), expected at least 2 for each hypothesis"));
  EXPECT_THAT(error_with(4, {2}), HasSubstr("'step' has shape (2), expected (1)"));
  OpCase op_case = setting.Case();
  op_case.attributes.Set("heads", int64_t{0});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("heads is 0, expected at least 1"));
}

}  // namespace
}  // namespace thimble
