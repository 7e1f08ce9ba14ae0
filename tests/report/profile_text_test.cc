#include "thimble/report/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/made_profile.h"

namespace thimble {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(ProfileText, PutsPlannedBesideMeasured) {
  const std::string text = ProfileText(MadeProfile());
  EXPECT_THAT(text, HasSubstr("net, batch 8 on abacus (AVX2, 2 threads): 100 parameters, 2 runs"));
  EXPECT_THAT(text, ContainsRegex("model +400 B +400 B +ok\n"));
  EXPECT_THAT(text, ContainsRegex("activations +3.00 kB +3.00 kB +ok\n"));
  EXPECT_THAT(text, ContainsRegex("gaps +332 B +332 B +ok\n"));
  EXPECT_THAT(text, HasSubstr("arena: 4096 bytes planned, 4096 allocated"));
  EXPECT_THAT(text, HasSubstr("planned = measured in every category, in 3 layers and 4 steps\n"));
  EXPECT_THAT(text, Not(HasSubstr("DIFFERS")));
}

TEST(ProfileText, TellsWhichOpsTakeTheTime) {
  const std::string text = ProfileText(MadeProfile());
  // 20 MFLOP and 2 MB in 3 ms.
  EXPECT_THAT(text, ContainsRegex("scale +2 +3.000 +30.0 % +6.7 +0.7\n"));
  EXPECT_THAT(text, ContainsRegex("all +4 +10.000 +100.0 %"));
  EXPECT_THAT(text, HasSubstr("step 10.000 ms, 800.0 images/s; 0.04 GFLOP per step, 4.0 GFLOP/s"));
  Profile predicted = MadeProfile();
  predicted.predicted_seconds = 0.009;
  EXPECT_THAT(ProfileText(predicted),
              HasSubstr("step 10.000 ms (predicted 9.000), 800.0 images/s"));
}

TEST(ProfileText, FurtherTablesOnlyWhereAskedFor) {
  EXPECT_THAT(ProfileText(MadeProfile()), Not(HasSubstr("second")));
  const std::string layers = ProfileText(MadeProfile(), {.layers = true});
  EXPECT_THAT(layers,
              ContainsRegex("second +2.30 kB +2.30 kB +ok +2.000 +3.000 +0.000 +30.00 MFLOP "
                            "+0 B +2.00 kB\n"));
  EXPECT_THAT(layers, ContainsRegex("\\(no layer\\) +64 B +64 B"));
  EXPECT_THAT(layers, Not(HasSubstr("scale_grad  second")));
  const std::string program = ProfileText(MadeProfile(), {.program = true});
  EXPECT_THAT(program, ContainsRegex("2 +backward  scale_grad +3.76 kB +3.76 kB +ok +3.000 "
                                     "+second\n"));
}

TEST(ProfileText, FlagsEveryPlaceThatDiffers) {
  const std::string text = ProfileText(ProfileWithDifference(), {.layers = true, .program = true});
  EXPECT_THAT(text, ContainsRegex("\nactivations +3.00 kB +3.00 kB +DIFFERS by .4 B\n"));
  EXPECT_THAT(text, ContainsRegex("\ngaps +332 B +328 B +DIFFERS by -4 B\n"));
  EXPECT_THAT(text, ContainsRegex("\nsecond .*DIFFERS by .4 B"));
  EXPECT_THAT(text, ContainsRegex("\nfirst .* ok "));
  EXPECT_THAT(text, ContainsRegex("1 +forward   scale  .*DIFFERS by .4 B"));
  EXPECT_THAT(text, AllOf(HasSubstr("planned and measured differ:\n"),
                          HasSubstr("  activations 'z' of layer second"),
                          Not(HasSubstr("planned = measured"))));
}

// Differences of two categories that cancel in the sum are still reported.
TEST(ProfileText, FlagsDifferencesThatCancelOut) {
  Profile profile = ProfileWithDifference();
  profile.measured_holdings[4].size_bytes -= 4;
  EXPECT_THAT(ProfileText(profile, {.layers = true}), ContainsRegex("\nsecond .*DIFFERS  "));
}

TEST(ProfileText, AGpuHasNoThreads) {
  Profile profile = MadeProfile();
  profile.host_may_allocate = true;
  profile.target = "tf32";
  EXPECT_THAT(ProfileText(profile), HasSubstr("on abacus (tf32): "));
}

}  // namespace
}  // namespace thimble
