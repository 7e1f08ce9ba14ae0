#include "thimble/tensor/shape.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).elements(), 0);
  EXPECT_EQ(Shape().elements(), 1);
}

TEST(Shape, ComparesRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_NE(Shape{}, Shape{0});
}

TEST(Shape, Prints) {
  EXPECT_EQ(ToString(Shape{100, 32, 32, 3}), "(100, 32, 32, 3)");
  EXPECT_EQ(ToString(Shape()), "()");
}

TEST(Shape, CheckedElementsNoticesOverflow) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).CheckedElements(), int64_t{1} << 40);
  EXPECT_EQ((Shape{1LL << 40, 1LL << 40}).CheckedElements(), std::nullopt);
}

TEST(Shape, CheckedElementsOfEmptyTensorIsZero) {
  EXPECT_EQ((Shape{0, 1LL << 40, 1LL << 40}).CheckedElements(), 0);
}

TEST(ShapeDeathTest, RejectsNegativeSizes) {
  EXPECT_DEATH((Shape{2, -1}), "dimension 1 is negative: -1");
}

TEST(ShapeDeathTest, RejectsTooManyDimensions) {
  EXPECT_DEATH((Shape{1, 1, 1, 1, 1, 1}), "rank 6 exceeds the maximum of 5");
}

}  // namespace
}  // namespace thimble
