#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "tests/support/tolerance.h"

namespace thimble {
namespace {

using testing::HasSubstr;

using Floats = std::vector<float>;

Attributes PlainRows(double scale = 1) { return {{"positions", int64_t{0}}, {"scale", scale}}; }

// All tokens are in the table. Positions, of size 1, are rounded before they are added.
OpCase EmbeddingCase(const Shape& tokens, const Shape& table, const Attributes& attributes) {
  const AttributeValue* positions = attributes.Find("positions");
  const bool has_positions = positions == nullptr || std::get<int64_t>(*positions) != 0;
  return {.op = "embedding",
          .inputs = {tokens, table},
          .attributes = attributes,
          .integer_bound = static_cast<int>(std::max<int64_t>(1, table[0])),
          .cancelled_size = has_positions ? 1.0 : 0.0};
}

OpCase WithAdvance(OpCase op_case, int64_t advance) {
  op_case.attributes.Set("advance", advance);
  return op_case;
}

OpCase WithOffset(OpCase op_case) {
  op_case.inputs.push_back(Shape{1});
  return op_case;
}

OpCase EmbeddingGradCase(const Shape& tokens, const Shape& table, int64_t padding = -1) {
  const int64_t places = tokens.elements();
  return {.op = "embedding_grad",
          .inputs = {tokens, {tokens[0], tokens[1], table[1]}},
          .attributes = {{"words", table[0]}, {"scale", 3.5}, {"padding", padding}},
          .integer_bound = static_cast<int>(std::max<int64_t>(1, table[0])),
          .shared_sum_size = static_cast<double>(std::max<int64_t>(1, places))};
}

struct TableSizes {
  Shape tokens;
  Shape table;
};

TableSizes DrawSizes(CaseDraw& draw, bool even_channels) {
  const int64_t channels = draw.Size(draw.OneIn(4) ? 300 : 40);
  const int64_t most_places = std::max<int64_t>(1, 12000 / channels);
  const int64_t times = draw.Size(std::min<int64_t>(most_places, draw.OneIn(3) ? 2000 : 30));
  return {{draw.OneIn(16) ? 0 : draw.Between(1, std::max<int64_t>(1, most_places / times)), times},
          {draw.Size(60), even_channels ? 2 * ((channels + 1) / 2) : channels}};
}

int64_t DrawPadding(CaseDraw& draw, const Shape& table) {
  return draw.OneIn(2) ? -1 : draw.Between(0, table[0] - 1);
}

}  // namespace

// One, several and no sentences; several chunks; longer sentences than a block of positions.
std::vector<OpCase> EmbeddingCases() {
  const Attributes positions = {{"scale", 22.6}, {"first_position", int64_t{2}}};
  std::vector<OpCase> cases;
  for (const auto& [tokens, table] :
       {TableSizes{{1, 1}, {1, 2}}, TableSizes{{3, 5}, {11, 6}}, TableSizes{{7, 25}, {50, 200}},
        TableSizes{{2, 70}, {9, 1030}}, TableSizes{{0, 5}, {4, 8}}, TableSizes{{5, 0}, {4, 8}},
        TableSizes{{3, 4}, {6, 0}}}) {
    cases.push_back(EmbeddingCase(tokens, table, positions));
    cases.push_back(WithOffset(EmbeddingCase(tokens, table, positions)));
    cases.push_back(WithOffset(WithAdvance(EmbeddingCase(tokens, table, positions), 0)));
    cases.push_back(EmbeddingCase(tokens, table, PlainRows(0.3)));
    cases.push_back(EmbeddingGradCase(tokens, table));
    cases.push_back(EmbeddingGradCase(tokens, table, 0));
  }
  OpCase padded = EmbeddingCase({5, 9}, {4, 34}, positions);
  padded.attributes.Set("padding", int64_t{3});
  cases.push_back(padded);
  cases.push_back(WithAdvance(EmbeddingCase({2, 70}, {9, 1030}, positions), 3));
  cases.push_back(EmbeddingCase({3, 7}, {5, 19}, PlainRows()));
  cases.push_back(EmbeddingGradCase({3, 7}, {5, 19}, 4));
  cases.push_back(EmbeddingGradCase({40, 50}, {100, 150}));
  // On a GPU: several words and slices of channels per block, more tokens than a block loads at
  // once, more places of a word than it lists.
  cases.push_back(EmbeddingGradCase({3, 9}, {70, 260}, 5));
  cases.push_back(EmbeddingGradCase({90, 50}, {20, 12}, 7));
  cases.push_back(EmbeddingGradCase({90, 50}, {1, 3}));
  cases.push_back(EmbeddingGradCase({90, 50}, {1, 4}));
  return cases;
}

// Some tokens are out of range.
OpCase Random_embedding(CaseDraw& draw) {
  const bool positions = draw.OneIn(2);
  const TableSizes sizes = DrawSizes(draw, positions);
  OpCase op_case = EmbeddingCase(sizes.tokens, sizes.table,
                                 {{"positions", int64_t{positions}},
                                  {"scale", 40 * draw.Fraction()},
                                  {"first_position", draw.Between(0, 3000)},
                                  {"advance", draw.OneIn(2) ? 1 : draw.Between(0, 3)},
                                  {"padding", DrawPadding(draw, sizes.table)}});
  if (draw.OneIn(3)) ++op_case.integer_bound;
  return draw.OneIn(2) ? op_case : WithOffset(std::move(op_case));
}

OpCase Random_embedding_grad(CaseDraw& draw) {
  const TableSizes sizes = DrawSizes(draw, false);
  OpCase op_case = EmbeddingGradCase(sizes.tokens, sizes.table, DrawPadding(draw, sizes.table));
  if (draw.OneIn(3)) ++op_case.integer_bound;
  return op_case;
}

namespace {

OpData TokenIndices(std::vector<int> tokens) { return {{}, std::move(tokens)}; }

TEST(Embedding, TakesScaledRowsOfTheTable) {
  for (const auto& outputs :
       RunAllKernels(EmbeddingCase({2, 2}, {3, 3}, PlainRows(2)),
                     {TokenIndices({2, 0, 1, 2}), {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (Floats{14, 16, 18, 2, 4, 6, 8, 10, 12, 14, 16, 18}));
  }
}

// Channels: sin(p), sin(p / 100), sin(p / 10,000), then the cosines.
TEST(Embedding, AddsThePositionsOfFairseq) {
  OpCase op_case = WithOffset(EmbeddingCase({2, 2}, {1, 6}, {{"first_position", int64_t{2}}}));
  for (const auto& outputs : RunAllKernels(
           op_case, {TokenIndices({0, 0, 0, 0}), {{0, 0, 0, 0, 0, 7}, {}}, TokenIndices({100})})) {
    for (size_t row = 0; row < 4; ++row) {
      const double position = 102 + static_cast<double>(row % 2);
      for (size_t c = 0; c < 6; ++c) {
        const double angle = position / std::pow(100.0, static_cast<double>(c % 3));
        const double expected = (c < 3 ? std::sin(angle) : std::cos(angle)) + (c == 5 ? 7 : 0);
        EXPECT_NEAR(outputs[0].floats[6 * row + c], expected, 8 * kFloatRounding)
            << row << ", " << c;
      }
    }
  }
}

TEST(Embedding, TwoChannelsAreOneSineAndCosine) {
  for (const auto& outputs :
       RunAllKernels(EmbeddingCase({1, 3}, {1, 2}, {}), {TokenIndices({0, 0, 0}), {{0, 0}, {}}})) {
    EXPECT_EQ(outputs[0].floats[0], 0);
    EXPECT_EQ(outputs[0].floats[1], 1);
    EXPECT_FLOAT_EQ(outputs[0].floats[4], static_cast<float>(std::sin(2.0)));
    EXPECT_FLOAT_EQ(outputs[0].floats[5], static_cast<float>(std::cos(2.0)));
  }
}

// Decoding token by token gives the bits of the whole sentence.
TEST(Embedding, AnOffsetContinuesASentence) {
  const Attributes attributes = {{"first_position", int64_t{2}}, {"scale", 1.5}};
  const OpData table{{1, 2, 3, 4, 5, 6, 7, 8}, {}};
  const auto whole =
      RunOp(EmbeddingCase({1, 3}, {2, 4}, attributes), {TokenIndices({1, 0, 1}), table})[0].floats;
  const auto last = RunOp(WithOffset(EmbeddingCase({1, 1}, {2, 4}, attributes)),
                          {TokenIndices({1}), table, TokenIndices({2})})[0]
                        .floats;
  EXPECT_EQ(last, Floats(whole.begin() + 8, whole.end()));
}

// Each token of a row has the bits that it has alone at that position.
TEST(Embedding, WithoutAdvanceTokensAreAlternatives) {
  const Attributes attributes = {{"first_position", int64_t{2}}, {"scale", 1.5}};
  const OpData table{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {}};
  const OpCase op_case = WithOffset(WithAdvance(EmbeddingCase({2, 2}, {3, 4}, attributes), 0));
  const OpCase alone = WithOffset(EmbeddingCase({1, 1}, {3, 4}, attributes));
  const std::vector<int> tokens = {1, 0, 2, 2};
  const OpData offset = TokenIndices({30});
  const auto outputs = RunAllKernels(op_case, {TokenIndices(tokens), table, offset});
  for (size_t kernel = 0; kernel < outputs.size(); ++kernel) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto row = outputs[kernel][0].floats.begin() + static_cast<ptrdiff_t>(4 * i);
      EXPECT_EQ(Floats(row, row + 4),
                RunAllKernels(alone, {TokenIndices({tokens[i]}), table, offset})[kernel][0].floats)
          << "kernel " << kernel << ", token " << i;
    }
  }
}

TEST(Embedding, TokensAreAdvanceApart) {
  const Attributes attributes = {{"first_position", int64_t{5}}, {"advance", int64_t{3}}};
  for (const auto& outputs : RunAllKernels(EmbeddingCase({1, 3}, {1, 2}, attributes),
                                           {TokenIndices({0, 0, 0}), {{0, 0}, {}}})) {
    for (size_t t = 0; t < 3; ++t) {
      EXPECT_FLOAT_EQ(outputs[0].floats[2 * t],
                      static_cast<float>(std::sin(5 + 3 * static_cast<double>(t))));
    }
  }
}

TEST(Embedding, PaddingIsZeroAndWrongTokensAreNan) {
  OpCase op_case = EmbeddingCase({1, 4}, {2, 2}, {{"padding", int64_t{1}}});
  for (const auto& outputs :
       RunAllKernels(op_case, {TokenIndices({1, -1, 2, 0}), {{1, 2, INFINITY, 4}, {}}})) {
    const Floats& y = outputs[0].floats;
    EXPECT_EQ(Floats(y.begin(), y.begin() + 2), (Floats{0, 0}));
    for (size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
    EXPECT_FLOAT_EQ(y[6], static_cast<float>(1 + std::sin(3.0)));
  }
}

TEST(EmbeddingGrad, AddsUpThePlacesOfEachToken) {
  OpCase op_case = EmbeddingGradCase({2, 3}, {4, 2}, 3);
  op_case.attributes.Set("scale", 2.0);
  for (const auto& outputs : RunAllKernels(
           op_case,
           {TokenIndices({1, 3, 1, -1, 0, 4}), {{1, 2, 10, 20, 3, 4, NAN, NAN, 5, 6, 7, 8}, {}}})) {
    EXPECT_EQ(outputs[0].floats, (Floats{10, 12, 8, 12, 0, 0, 0, 0}));
  }
}

// 2^24 + 1 rounds to 2^24: only adding from the first place on gives 2^24 + 2.
TEST(EmbeddingGrad, AddsInTheOrderOfThePlaces) {
  OpCase op_case = EmbeddingGradCase({1, 3}, {1, 1});
  op_case.attributes.Set("scale", 1.0);
  for (const auto& outputs :
       RunAllKernels(op_case, {TokenIndices({0, 0, 0}), {{1, 1, 0x1p24F}, {}}})) {
    EXPECT_EQ(outputs[0].floats, Floats{0x1p24F + 2});
  }
}

TEST(Embedding, ScratchIsSmallBesideTheTensors) {
  const Shape table{8848, 512};
  const std::pair<OpCase, size_t> most_bytes[] = {
      {EmbeddingCase({160, 25}, table, {}), size_t{25 * 512 * 4}},
      {EmbeddingCase({1, 4000}, table, {}), size_t{128 << 10}},
      {EmbeddingCase({1, 4000}, table, {{"advance", int64_t{0}}}), size_t{512 * 4}},
      {EmbeddingCase({160, 25}, table, PlainRows()), size_t{0}},
      {EmbeddingGradCase({160, 25}, table), size_t{(8848 + 4000) * 4}}};
  for (const auto& [op_case, bytes] : most_bytes) {
    const PreparedCase prepared(op_case);
    EXPECT_EQ(prepared.op.kernels()[0].scratch_bytes(prepared.call(), {}), bytes)
        << ToString(op_case);
  }
}

TEST(Embedding, RejectsWrongShapes) {
  EXPECT_THAT(ShapeError(EmbeddingCase({2, 2}, {3, 5}, {})),
              HasSubstr("5 channels, expected an even number for positions"));
  OpCase op_case = EmbeddingCase({2, 2}, {3, 4}, {});
  op_case.inputs[0] = Shape{4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'tokens' has shape (4)"));
  op_case = EmbeddingCase({2, 2}, {3, 4}, {});
  op_case.inputs[1] = Shape{12};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'table' has shape (12)"));
  op_case = WithOffset(EmbeddingCase({2, 2}, {3, 4}, {}));
  op_case.inputs[2] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'offset' has shape (2), expected (1)"));
  for (const int64_t padding : {-2, 3}) {
    EXPECT_THAT(ShapeError(EmbeddingCase({2, 2}, {3, 4}, {{"padding", padding}})),
                HasSubstr("expected a token below 3 or -1"));
  }
  EXPECT_THAT(ShapeError(EmbeddingCase({2, 2}, {3, 4}, {{"advance", int64_t{-1}}})),
              HasSubstr("advance is -1, expected at least 0"));
}

TEST(EmbeddingGrad, RejectsWrongShapes) {
  OpCase op_case = EmbeddingGradCase({2, 3}, {5, 4});
  op_case.inputs[1] = Shape{3, 2, 4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'dy' has shape (3, 2, 4), expected (2, 3, 4)"));
  op_case.inputs[1] = Shape{6, 4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("expected 3 dimensions (B, T, C)"));
  EXPECT_THAT(ShapeError(EmbeddingGradCase({2, 3}, {5, 4}, 5)),
              HasSubstr("padding is 5, expected a token below 5 or -1"));
  op_case = EmbeddingGradCase({2, 3}, {5, 4});
  op_case.attributes.Set("words", int64_t{-1});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("words is -1, expected at least 0"));
  op_case = EmbeddingGradCase({1 << 16, 1 << 15}, {5, 4});
  EXPECT_THAT(ShapeError(op_case), HasSubstr("tokens, expected at most 2147483647"));
}

}  // namespace
}  // namespace thimble
