#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/run_op.h"
#include "thimble/ops/accumulate/accumulate_tensors.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The first part or a later one: `seen` is drawn below the limit.
constexpr int kFirst = 1;
constexpr int kLater = 1 << 20;

OpCase AccumulateCase(const Shape& shape, int seen_bound) {
  return {.op = "accumulate", .inputs = {shape, shape, Shape{1}}, .integer_bound = seen_bound};
}

}  // namespace

std::vector<OpCase> AccumulateCases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1}, Shape{0}, Shape{3, 3, 5, 33}, Shape{40001}}) {
    cases.push_back(AccumulateCase(shape, kFirst));
    cases.push_back(AccumulateCase(shape, kLater));
  }
  return cases;
}

OpCase Random_accumulate(CaseDraw& draw) {
  return AccumulateCase(draw.AnyShape(), draw.OneIn(2) ? kFirst : kLater);
}

namespace {

TEST(Accumulate, TheFirstPartReplacesWhateverIsThere) {
  const OpCase op_case = AccumulateCase(Shape{3}, kFirst);
  const std::vector<OpData> inputs = {{{NAN, INFINITY, 7}, {}}, {{1, 2, 3}, {}}, {{}, {0}}};
  for (const auto& outputs : RunAllKernels(op_case, inputs)) {
    EXPECT_THAT(outputs[0].floats, ElementsAre(1, 2, 3));
  }
}

TEST(Accumulate, LaterPartsAreAdded) {
  const OpCase op_case = AccumulateCase(Shape{2}, kLater);
  for (const auto& outputs : RunAllKernels(op_case, {{{0.5, -2}, {}}, {{1, 2}, {}}, {{}, {5}}})) {
    EXPECT_THAT(outputs[0].floats, ElementsAre(1.5, 0));
  }
}

TEST(Accumulate, PassesNanOfGradient) {
  for (const int seen : {0, 3}) {
    const OpCase op_case = AccumulateCase(Shape{1}, kLater);
    for (const auto& outputs : RunAllKernels(op_case, {{{1}, {}}, {{NAN}, {}}, {{}, {seen}}})) {
      EXPECT_TRUE(std::isnan(outputs[0].floats[0])) << seen;
    }
  }
}

TEST(Accumulate, RejectsWrongShapes) {
  OpCase op_case = AccumulateCase(Shape{3}, kFirst);
  op_case.inputs[1] = Shape{4};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'x' has shape (4), expected (3)"));
  op_case = AccumulateCase(Shape{3}, kFirst);
  op_case.inputs[2] = Shape{2};
  EXPECT_THAT(ShapeError(op_case), HasSubstr("'seen' has shape (2), expected (1)"));
}

TEST(AccumulateTensors, EachElementHasOneBlock) {
  const int sizes[] = {1, 0, kAccumulateBlockElements, kAccumulateBlockElements + 1, 3};
  AccumulateTensors list;
  for (int size : sizes) list.Add({.elements = size});
  EXPECT_EQ(list.num_tensors, 4);
  EXPECT_EQ(list.num_blocks, 5);
  std::vector<int> covered(static_cast<size_t>(list.num_tensors), 0);
  for (int block = 0; block < list.num_blocks; ++block) {
    const int index = list.Find(block);
    const AccumulateTensor& tensor = list.tensors[index];
    const int first = (block - tensor.first_block) * kAccumulateBlockElements;
    EXPECT_EQ(first, covered[static_cast<size_t>(index)]);
    covered[static_cast<size_t>(index)] =
        std::min(tensor.elements, first + kAccumulateBlockElements);
  }
  for (int i = 0; i < list.num_tensors; ++i) {
    EXPECT_EQ(covered[static_cast<size_t>(i)], list.tensors[i].elements);
  }
}

}  // namespace
}  // namespace thimble
