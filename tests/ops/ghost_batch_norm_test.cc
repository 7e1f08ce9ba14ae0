// batch_norm with group=m: each part of at most m samples is a separate batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"
#include "tests/support/tolerance.h"
#include "thimble/base/nearly_equal_parts.h"

namespace thimble {
namespace {

using testing::HasSubstr;

struct Ghost {
  Shape x;
  int64_t group;  // 0: one part of all

  NearlyEqualParts parts() const { return CutNearlyEqually(x[0], group); }
  int64_t channels() const { return x[x.rank() - 1]; }
  Shape statistics() const {
    return group == 0 ? Shape{channels()} : Shape{parts().parts, channels()};
  }
};

int64_t Rows(const Shape& x) { return x.elements() / std::max<int64_t>(1, x[x.rank() - 1]); }

OpCase GhostBatchNormCase(const std::string& op, const Ghost& ghost, int64_t relu) {
  const Shape channels{ghost.channels()};
  OpCase op_case{.op = op,
                 .inputs = {ghost.x, channels, channels},
                 .attributes = {{"group", ghost.group}, {"relu", relu}},
                 .positive_inputs = {1},
                 .shared_sum_size = static_cast<double>(Rows(ghost.x))};
  if (op == "batch_norm_statistics") {
    op_case.inputs = {ghost.x};
    op_case.attributes = {{"group", ghost.group}};
    op_case.positive_inputs = {};
  }
  if (op == "batch_norm" || op == "batch_norm_statistics") return op_case;
  op_case.positive_inputs = {1, 4};
  op_case.inputs.insert(op_case.inputs.end(), 2, ghost.statistics());
  if (op == "batch_norm_eval") {
    op_case.constant_inputs = {3, 4};
    return op_case;
  }
  op_case.inputs.push_back(ghost.x);
  if (op == "batch_norm_grad_add") op_case.inputs.push_back(ghost.x);
  return op_case;
}

constexpr const char* kOps[] = {"batch_norm", "batch_norm_grad", "batch_norm_grad_add",
                                "batch_norm_eval", "batch_norm_eval_grad"};

// Rows of the smallest part; 0 if x is empty.
int64_t FewestRows(const Ghost& ghost) {
  if (ghost.x.elements() == 0) return 0;
  const NearlyEqualParts parts = ghost.group == 0 ? NearlyEqualParts{ghost.x[0], 1} : ghost.parts();
  return Rows(ghost.x) / ghost.x[0] * parts.Size(parts.parts - 1);
}

// Very few normalized rows are only a sign and rounding errors, which changing the inputs does not
// show: fewer rows are not drawn.
constexpr int64_t kMeasuredRows = 8;
constexpr int64_t kRowsOfGradient = 3;

// With parts or without.
OpCase RandomCase(const std::string& op, CaseDraw& draw, int64_t least_rows = 0) {
  for (;;) {
    Ghost ghost{draw.AnyShape(2), 0};
    if (draw.OneIn(2)) ghost.group = draw.Between(1, ghost.x[0] + 1);
    const int64_t rows = FewestRows(ghost);
    if (rows == 0 || rows >= least_rows) return GhostBatchNormCase(op, ghost, draw.Between(0, 1));
  }
}

}  // namespace

// Parts of unequal sizes, of one sample, of all samples; groups larger than the batch; several
// chunks and, with 70 parts, more of them than a GPU adds up at once.
std::vector<OpCase> GhostBatchNormCases() {
  std::vector<OpCase> cases;
  for (const Ghost& ghost :
       {Ghost{{7, 3, 3, 5}, 3}, Ghost{{7, 3, 3, 32}, 3}, Ghost{{3, 2, 2, 4}, 1},
        Ghost{{5, 4, 17}, 5}, Ghost{{4, 3, 3}, 9}, Ghost{{9, 2}, 4}, Ghost{{0, 4, 4, 3}, 2},
        Ghost{{5, 40, 40, 16}, 2}, Ghost{{70, 2, 2, 36}, 1}, Ghost{{3, 5, 7, 300}, 2}}) {
    for (const char* op : kOps) {
      for (int64_t relu : {0, 1}) cases.push_back(GhostBatchNormCase(op, ghost, relu));
    }
    cases.push_back(GhostBatchNormCase("batch_norm_statistics", ghost, 0));
  }
  return cases;
}

OpCase Random_batch_norm(CaseDraw& draw) { return RandomCase("batch_norm", draw, kMeasuredRows); }
OpCase Random_batch_norm_statistics(CaseDraw& draw) {
  return RandomCase("batch_norm_statistics", draw);
}
OpCase Random_batch_norm_grad(CaseDraw& draw) {
  return RandomCase("batch_norm_grad", draw, kRowsOfGradient);
}
OpCase Random_batch_norm_grad_add(CaseDraw& draw) {
  return RandomCase("batch_norm_grad_add", draw, kRowsOfGradient);
}
OpCase Random_batch_norm_eval(CaseDraw& draw) { return RandomCase("batch_norm_eval", draw); }
OpCase Random_batch_norm_eval_grad(CaseDraw& draw) {
  return RandomCase("batch_norm_eval_grad", draw);
}

namespace {

std::vector<OpData> RandomNormData(const OpCase& op_case) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal(0.5F, 1.0F);
  std::vector<OpData> data(op_case.inputs.size());
  for (size_t i = 0; i < data.size(); ++i) {
    data[i].floats.resize(static_cast<size_t>(op_case.inputs[i].elements()));
    for (float& number : data[i].floats) number = normal(generator);
  }
  return data;
}

// The samples of a tensor that belong to a part, or its row of statistics.
std::vector<float> Slice(const std::vector<float>& all, int64_t begin, int64_t end, int64_t of) {
  const int64_t per_item = static_cast<int64_t>(all.size()) / of;
  return {all.begin() + begin * per_item, all.begin() + end * per_item};
}

class GhostBatchNormParts : public testing::TestWithParam<Ghost> {
 protected:
  // The call of one part alone, as a plain batch norm, and its data.
  OpCase PartCase(const OpCase& whole, int64_t part) const {
    OpCase op_case = whole;
    op_case.attributes.Set("group", int64_t{0});
    for (Shape& shape : op_case.inputs) {
      if (shape == ghost_.x) shape = PartShape(part);
      if (shape == ghost_.statistics()) shape = Shape{ghost_.channels()};
    }
    return op_case;
  }
  std::vector<OpData> PartData(const OpCase& whole, const std::vector<OpData>& data,
                               int64_t part) const {
    std::vector<OpData> cut = data;
    for (size_t i = 0; i < data.size(); ++i) {
      if (whole.inputs[i] == ghost_.x) cut[i].floats = Samples(data[i], part);
      if (whole.inputs[i] == ghost_.statistics()) cut[i].floats = Statistics(data[i], part);
    }
    return cut;
  }
  std::vector<float> Samples(const OpData& data, int64_t part) const {
    return Slice(data.floats, parts_.Begin(part), parts_.Begin(part + 1), parts_.total);
  }
  std::vector<float> Statistics(const OpData& data, int64_t part) const {
    return Slice(data.floats, part, part + 1, parts_.parts);
  }

  const Ghost ghost_ = GetParam();
  const NearlyEqualParts parts_ = ghost_.parts();

 private:
  Shape PartShape(int64_t part) const {
    std::vector<int64_t> sizes;
    for (size_t axis = 0; axis < ghost_.x.rank(); ++axis) sizes.push_back(ghost_.x[axis]);
    sizes[0] = parts_.Size(part);
    return Shape(sizes);
  }
};

TEST_P(GhostBatchNormParts, AreTheBitsOfBatchesOfTheirOwn) {
  const OpCase whole = GhostBatchNormCase("batch_norm", ghost_, 1);
  const auto data = RandomNormData(whole);
  const auto outputs = RunOp(whole, data);
  for (int64_t part = 0; part < parts_.parts; ++part) {
    SCOPED_TRACE(part);
    const auto alone = RunOp(PartCase(whole, part), PartData(whole, data, part));
    EXPECT_EQ(Samples(outputs[0], part), alone[0].floats);
    EXPECT_EQ(Statistics(outputs[1], part), alone[1].floats);
    EXPECT_EQ(Statistics(outputs[2], part), alone[2].floats);
  }
}

TEST_P(GhostBatchNormParts, HaveTheGradientsOfBatchesOfTheirOwn) {
  const OpCase whole = GhostBatchNormCase("batch_norm_grad", ghost_, 1);
  auto data = RandomNormData(whole);
  for (float& variance : data[4].floats) variance = variance * variance + 0.5F;
  const auto outputs = RunOp(whole, data);
  std::vector<double> sums[2];
  for (auto& sum : sums) sum.resize(static_cast<size_t>(ghost_.channels()));
  for (int64_t part = 0; part < parts_.parts; ++part) {
    SCOPED_TRACE(part);
    const auto alone = RunOp(PartCase(whole, part), PartData(whole, data, part));
    EXPECT_EQ(Samples(outputs[0], part), alone[0].floats);
    for (size_t c = 0; c < sums[0].size(); ++c) {
      sums[0][c] += alone[1].floats[c];
      sums[1][c] += alone[2].floats[c];
    }
  }
  // Those of the parameters are sums, rounded once instead of once for each part.
  const double rows = static_cast<double>(ghost_.x.elements() / ghost_.channels());
  for (size_t c = 0; c < sums[0].size(); ++c) {
    EXPECT_NEAR(outputs[1].floats[c], sums[0][c], rows * kFloatRounding);
    EXPECT_NEAR(outputs[2].floats[c], sums[1][c], rows * kFloatRounding);
  }
}

TEST_P(GhostBatchNormParts, CanBeComputedAgainFromTheirStatistics) {
  const OpCase norm = GhostBatchNormCase("batch_norm", ghost_, 1);
  const auto data = RandomNormData(norm);
  const auto outputs = RunOp(norm, data);
  const auto again = RunOp(GhostBatchNormCase("batch_norm_eval", ghost_, 1),
                           {data[0], data[1], data[2], outputs[1], outputs[2]});
  EXPECT_EQ(again[0].floats, outputs[0].floats);
}

// The last one has parts of several chunks, of different lengths.
INSTANTIATE_TEST_SUITE_P(Shapes, GhostBatchNormParts,
                         testing::Values(Ghost{{7, 3, 3, 5}, 3}, Ghost{{6, 8, 8, 20}, 1},
                                         Ghost{{4, 8, 8, 64}, 4}, Ghost{{5, 40, 40, 16}, 2}));

TEST(GhostBatchNorm, OnePartIsThePlainNorm) {
  const OpCase ghost = GhostBatchNormCase("batch_norm", {{4, 6, 6, 20}, 100}, 0);
  OpCase plain = ghost;
  plain.attributes = {};
  const auto data = RandomNormData(ghost);
  const auto expected = RunOp(plain, data);
  const auto actual = RunOp(ghost, data);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(actual[i].floats, expected[i].floats);
}

TEST(GhostBatchNorm, NormalizesEachPart) {
  OpCase op_case = GhostBatchNormCase("batch_norm", {{3, 1}, 2}, 0);
  op_case.attributes.Set("epsilon", 1.0);
  for (const auto& outputs : RunAllKernels(op_case, {{{1, 3, 50}, {}}, {{2}, {}}, {{5}, {}}})) {
    EXPECT_THAT(outputs[0].floats, testing::ElementsAre(testing::FloatEq(5 - std::sqrt(2.0F)),
                                                        testing::FloatEq(5 + std::sqrt(2.0F)), 5));
    EXPECT_EQ(outputs[1].floats, (std::vector<float>{2, 50}));
    EXPECT_EQ(outputs[2].floats, (std::vector<float>{1, 0}));
  }
}

TEST(GhostBatchNorm, NanStaysInItsPart) {
  for (const auto& outputs : RunAllKernels(GhostBatchNormCase("batch_norm", {{4, 1}, 2}, 0),
                                           {{{NAN, 1, 2, 3}, {}}, {{1}, {}}, {{0}, {}}})) {
    EXPECT_TRUE(std::isnan(outputs[0].floats[1]) && std::isnan(outputs[1].floats[0]));
    EXPECT_FALSE(std::isnan(outputs[0].floats[2]) || std::isnan(outputs[0].floats[3]));
    EXPECT_EQ(outputs[1].floats[1], 2.5F);
  }
}

TEST(GhostBatchNorm, ScratchStaysBounded) {
  // 100 images of 32 x 32 x 32 in parts of two: a fiftieth of the activation at most.
  const OpCase op_case = GhostBatchNormCase("batch_norm", {{100, 32, 32, 32}, 2}, 0);
  const PreparedCase prepared(op_case);
  const size_t scratch = prepared.op.kernels()[0].scratch_bytes(prepared.call(), {});
  EXPECT_LE(scratch, op_case.inputs[0].elements() * sizeof(float) / 50);
}

TEST(GhostBatchNorm, RejectsStatisticsOfAnotherGroup) {
  for (const char* op :
       {"batch_norm_grad", "batch_norm_grad_add", "batch_norm_eval", "batch_norm_eval_grad"}) {
    OpCase op_case = GhostBatchNormCase(op, {{7, 2, 16}, 3}, 0);
    op_case.attributes.Set("group", int64_t{2});
    EXPECT_THAT(ShapeError(op_case), HasSubstr("mean' has shape (3, 16), expected (4, 16)")) << op;
    op_case.attributes.Set("group", int64_t{0});
    EXPECT_THAT(ShapeError(op_case), HasSubstr("mean' has shape (3, 16), expected (16)")) << op;
  }
}

TEST(GhostBatchNorm, RejectsANegativeGroup) {
  for (const char* op : kOps) {
    OpCase op_case = GhostBatchNormCase(op, {{7, 2, 16}, 3}, 0);
    op_case.attributes.Set("group", int64_t{-1});
    EXPECT_THAT(ShapeError(op_case), HasSubstr("group is -1, expected at least 0")) << op;
  }
}

}  // namespace
}  // namespace thimble
