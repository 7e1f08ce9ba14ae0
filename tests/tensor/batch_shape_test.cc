#include "thimble/tensor/batch_shape.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(BatchShape, CountsSamplesOrTheTokensOfTheLongerSide) {
  EXPECT_EQ((BatchShape{100}.size()), 100);
  EXPECT_EQ((BatchShape{160, 20, 25}.size()), 4000);
  EXPECT_EQ((BatchShape{160, 30, 25}.sample_size()), 30);
}

TEST(BatchShape, SomeOfTheSamples) {
  EXPECT_EQ((BatchShape{160, 20, 25}.With(7)), (BatchShape{7, 20, 25}));
}

TEST(BatchShape, HasAName) {
  EXPECT_EQ(ToString(BatchShape{100}), "100");
  EXPECT_EQ(ToString(BatchShape{160, 20, 25}), "160x20+25");
}

}  // namespace
}  // namespace thimble
