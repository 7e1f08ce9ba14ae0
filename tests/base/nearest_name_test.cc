#include "thimble/base/nearest_name.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

const std::vector<std::string> kNames = {"batch", "microbatch", "lr", "epochs", "eval-every"};

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0U);
  EXPECT_EQ(EditDistance("batch", "batch"), 0U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("abc", ""), 3U);
  EXPECT_EQ(EditDistance("bach", "batch"), 1U);
  EXPECT_EQ(EditDistance("baatch", "batch"), 1U);
  EXPECT_EQ(EditDistance("butch", "batch"), 1U);
  EXPECT_EQ(EditDistance("bacth", "batch"), 1U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
}

TEST(NearestName, FindsWhatASlipStandsFor) {
  EXPECT_EQ(NearestName("bacth", kNames), "batch");
  EXPECT_EQ(NearestName("BATCH", kNames), "batch");
  EXPECT_EQ(NearestName("micro-batch", kNames), "microbatch");
  EXPECT_EQ(NearestName("epoch", kNames), "epochs");
  EXPECT_EQ(NearestName("eval-evry", kNames), "eval-every");
  EXPECT_EQ(NearestName("l", kNames), "lr");
}

TEST(NearestName, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("gravity", kNames), "");
  EXPECT_EQ(NearestName("xy", kNames), "");
  EXPECT_EQ(NearestName("b", {"a"}), "");  // every letter replaced
  EXPECT_EQ(NearestName(std::string(100'000, 'b'), kNames), "");
  EXPECT_EQ(NearestName("batch", {}), "");
}

TEST(NearestName, TheFirstOfTheNearestWins) {
  EXPECT_EQ(NearestName("bat", {"cat", "bad", "bat"}), "bat");
  EXPECT_EQ(NearestName("bat", {"cat", "bad"}), "cat");
}

TEST(DidYouMean, IsTheEndOfAMessage) {
  EXPECT_EQ(DidYouMean("bacth", kNames, "--"), "; did you mean --batch?");
  EXPECT_EQ(DidYouMean("epoch", kNames), "; did you mean epochs?");
  EXPECT_EQ(DidYouMean("gravity", kNames), "");
}

}  // namespace
}  // namespace thimble
