#include "thimble/train/loop/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(DescribeDivergence, SaysWhatIsKept) {
  const std::string text = DescribeDivergence("the loss is infinite at step 7", 5);
  EXPECT_THAT(text, StartsWith("the loss is infinite at step 7: training has diverged"));
  EXPECT_THAT(text, HasSubstr("the last good checkpoint, of step 5, is kept"));
  EXPECT_THAT(DescribeDivergence("x", -1), HasSubstr("there was no checkpoint yet"));
  EXPECT_THAT(DescribeDivergence("x", 0), HasSubstr("of step 0"));
}

}  // namespace
}  // namespace thimble
