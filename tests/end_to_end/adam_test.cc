// Adam's ways to save memory with each other and with parts of a batch and 16 bits, on a small
// translator: what is planned is measured, a stopped run goes on bit for bit, and each is as exact
// as it claims.
#include <array>
#include <optional>

#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

constexpr std::array<const char*, 5> kAdamOptions = {"--microbatch 90", "--precision fp16",
                                                     "--store optimizer=q8", "--update-in-backward",
                                                     "--second-moment factored"};
enum AdamOption : size_t {
  kInAdamParts,
  kIn16Bits,
  kStateIn8Bits,
  kAdamInBackward,
  kFactoredMoment
};

// A set of options, as bits.
struct AdamChoice {
  size_t bits;

  bool Has(AdamOption option) const { return (bits >> option & 1) != 0; }
  AdamChoice Without(AdamOption option) const { return {bits & ~(size_t{1} << option)}; }
  std::string Options() const {
    std::string options;
    for (size_t i = 0; i < kAdamOptions.size(); ++i) {
      if ((bits >> i & 1) != 0) options += std::string(kAdamOptions[i]) + " ";
    }
    return options;
  }
};

class AdamEndToEnd : public NoReportFixture, public testing::WithParamInterface<size_t> {
 protected:
  static std::string Training(const AdamChoice& choice, const std::string& run, int steps) {
    return "train --model dynamicconv-tiny --data numbers:60,5 --batch 200 --lr 0.01 --warmup 0 "
           "--schedule constant --log-every 1 --threads 2 --eval-every 0 --beam 0 --steps " +
           std::to_string(steps) + " " + choice.Options() + "--out @/" + run + " --overwrite";
  }
  std::vector<double> Train(const AdamChoice& choice, const std::string& run, int steps = 4) {
    RunWell(Training(choice, run, steps));
    return LossesOf(At(run));
  }

  void Check(const AdamChoice& choice) {
    SCOPED_TRACE(choice.Options());
    const std::vector<double> losses = Train(choice, "run");
    const auto summary = SummaryOf(At("run"));
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
    EXPECT_EQ(summary["map_calls_in_steps"], 0);
    Train(choice, "resumed", 2);
    std::string longer = Training(choice, "resumed", 4);
    longer.replace(longer.find("--overwrite"), 11, "--resume --extend");
    RunWell(longer);
    EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("resumed"))) << "resumed";
    if (choice.Has(kAdamInBackward)) CheckUpdateInBackward(choice, losses);
    if (choice.Has(kFactoredMoment)) CheckFactored(choice, losses, *ArenaOf("run"));
  }

 private:
  std::optional<int64_t> ArenaOf(const std::string& run) {
    return SummaryOf(At(run))["arena_bytes"].integer<int64_t>();
  }
  // Without parts, the same bits. With them, squares are summed instead of sums squared: the first
  // step is up to some times as large, and the losses are only of the same kind.
  void CheckUpdateInBackward(const AdamChoice& choice, const std::vector<double>& losses) {
    const std::vector<double> expected = Train(choice.Without(kAdamInBackward), "without");
    if (!choice.Has(kInAdamParts)) {
      EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("without"))) << "same bits in one part";
      return;
    }
    EXPECT_FALSE(WeightsOf(At("run")) == WeightsOf(At("without")));
    EXPECT_LT(losses.back(), losses.front());
    EXPECT_NEAR(losses.back(), expected.back(), 0.3 * expected.back());
  }
  void CheckFactored(const AdamChoice& choice, const std::vector<double>& losses, int64_t arena) {
    const std::vector<double> expected = Train(choice.Without(kFactoredMoment), "without");
    EXPECT_LT(arena, *ArenaOf("without"));
    EXPECT_LT(losses.back(), losses.front());
    EXPECT_NEAR(losses.back(), expected.back(), 0.3 * expected.back());
  }
};

// Eight combinations in which every two options meet, each with and without the other.
TEST_P(AdamEndToEnd, EveryPairOfWaysToSaveMemory) {
  for (size_t free = GetParam(); free < 8; free += 2) {
    const size_t a = free & 1;
    const size_t b = free >> 1 & 1;
    const size_t c = free >> 2;
    Check({a << kInAdamParts | b << kIn16Bits | c << kStateIn8Bits | (a ^ b) << kFactoredMoment |
           (a ^ c) << kAdamInBackward});
  }
}
INSTANTIATE_TEST_SUITE_P(All, AdamEndToEnd, testing::Range<size_t>(0, 2));

class SlowAdamEndToEnd : public AdamEndToEnd {};
TEST_P(SlowAdamEndToEnd, AllWaysToSaveMemory) {
  const size_t all = size_t{1} << kAdamOptions.size();
  for (size_t bits = GetParam(); bits < all; bits += 4) Check({bits});
}
INSTANTIATE_TEST_SUITE_P(SlowAll, SlowAdamEndToEnd, testing::Range<size_t>(0, 4));

TEST_F(NoReportFixture, SecondMomentNeedsAdam) {
  const ProcessResult result = Run("plan --model wrn-10-1 --second-moment factored");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("only with --optimizer adam"));
}

}  // namespace
}  // namespace thimble
