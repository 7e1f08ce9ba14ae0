// Numbers in fewer than 32 bits, loss scaling and clipping, from the command line to the files of
// the run.
#include <cmath>

#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::string ShortTraining(int steps) {
  return "train --model wrn-10-1 --data shapes:40,7 --batch 10 --lr 0.01 --log-every 1 --steps " +
         std::to_string(steps) + " ";
}

class PrecisionEndToEnd : public NoReportFixture {
 protected:
  Json Plan(const std::string& options) const {
    return ParseObject(
        RunWell("plan --model wrn-28-2 --batch 100 --threads 2 --json " + options).out);
  }
};

TEST_F(PrecisionEndToEnd, SixteenBitsHalveEveryCategory) {
  const Json plain = Plan("--microbatch 10");
  for (const char* precision : {"fp16", "bf16"}) {
    const Json plan = Plan(std::string("--microbatch 10 --precision ") + precision);
    for (const char* category : {"model", "gradients", "optimizer", "activations"}) {
      const auto before = plain["categories"][category].get<double>();
      const auto after = plan["categories"][category].get<double>();
      EXPECT_LT(after, 0.52 * before) << precision << " " << category;
      EXPECT_GT(after, 0.45 * before) << precision << " " << category;
    }
  }
}

TEST_F(PrecisionEndToEnd, ThePlanSaysWhatIsStoredHow) {
  const Json plan = Plan("--precision fp16 --store optimizer=q8 --clip 1 --update-in-backward");
  std::vector<std::string> done;
  for (const Json& technique : plan["techniques"]) {
    done.push_back(technique["name"].get<std::string>() + ": " +
                   technique["done"].get<std::string>());
  }
  EXPECT_THAT(done, testing::IsSupersetOf(
                        {"precision: all numbers fp16; statistics, softmax and loss fp32",
                         "store: optimizer q8",
                         "update-in-backward: not done, an array of gradients is kept: clipping "
                         "needs the norm of all gradients"}));
}

TEST_F(PrecisionEndToEnd, SameBitsForAnyNumberOfThreads) {
  const std::string options = "--precision fp16 --store optimizer=q8 --microbatch 4 ";
  RunWell(ShortTraining(3) + options + "--threads 2 --out @/two");
  RunWell(ShortTraining(3) + options + "--threads 1 --out @/one");
  ExpectSameRun(At("two"), At("one"));
}

// By default errors of weights in bf16 return, and those in fp16 do not.
TEST_F(PrecisionEndToEnd, ErrorFeedbackFollowsTheTypeOfTheWeights) {
  const auto weights = [&](const std::string& options, const std::string& run) {
    RunWell(ShortTraining(4) + options + " --out @/" + run);
    return WeightsOf(At(run));
  };
  const std::string bf16 = weights("--precision bf16", "bf16");
  EXPECT_TRUE(bf16 == weights("--precision bf16 --error-feedback on", "bf16-on"));
  EXPECT_FALSE(bf16 == weights("--precision bf16 --error-feedback off", "bf16-off"));
  const std::string fp16 = weights("--precision fp16", "fp16");
  EXPECT_FALSE(fp16 == weights("--precision fp16 --error-feedback on", "fp16-on"));
  EXPECT_TRUE(fp16 == weights("--precision fp16 --error-feedback off", "fp16-off"));
}

// The scale grows every second update until an update overflows; that update is skipped.
TEST_F(PrecisionEndToEnd, TheScaleFindsItsPlace) {
  RunWell(ShortTraining(24) +
          "--precision fp16 --loss-scale 1e6 --loss-scale-interval 4 --loss-scale-factor 8 "
          "--out @/run");
  const Json summary = SummaryOf(At("run"));
  EXPECT_GT(summary["skipped_updates"].get<int64_t>(), 0);
  EXPECT_GT(summary["loss_scale"].number(), 0);
  bool shrunk = false;
  bool grew = false;
  double last = 1e6;
  for (const std::string& line : MetricsOf(At("run"))) {
    const Json json = ParseObject(line);
    if (!json.contains("loss_scale")) continue;
    const double scale = json["loss_scale"].number();
    shrunk |= scale < last;
    grew |= scale > last;
    last = scale;
  }
  EXPECT_TRUE(shrunk);
  EXPECT_TRUE(grew);
  for (const double loss : LossesOf(At("run"))) EXPECT_TRUE(std::isfinite(loss));
}

// Every update overflows: weights, momentum and statistics stay those of the start.
TEST_F(PrecisionEndToEnd, ASkippedUpdateChangesNothing) {
  RunWell(ShortTraining(0) + "--epochs 0 --precision fp16 --out @/start");
  RunWell(ShortTraining(2) + "--precision fp16 --loss-scale 1e30 --out @/skipped");
  EXPECT_EQ(SummaryOf(At("skipped"))["skipped_updates"], 2);
  // Between the header with the number of steps and the checksum at the end.
  const std::string before = WeightsOf(At("start"));
  const std::string after = WeightsOf(At("skipped"));
  const size_t compared = 100'000;
  ASSERT_GT(before.size(), compared);
  EXPECT_TRUE(before.substr(before.size() - compared, compared / 2) ==
              after.substr(after.size() - compared, compared / 2));
}

TEST_F(PrecisionEndToEnd, AtTheFloorTrainingStopsAndSaysWhy) {
  const auto result = Run(ShortTraining(20) +
                          "--precision fp16 --loss-scale 1e30 --loss-scale-floor 1e29 "
                          "--checkpoint-every 1 --out @/run");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot shrink any further"));
  EXPECT_THAT(result.err, HasSubstr("step 5"));
}

TEST_F(PrecisionEndToEnd, ClippingLimitsTheFirstUpdate) {
  RunWell(ShortTraining(1) + "--momentum 0 --weight-decay 0 --out @/plain");
  RunWell(ShortTraining(1) + "--momentum 0 --weight-decay 0 --clip 1e-9 --out @/clipped");
  RunWell(ShortTraining(1) + "--momentum 0 --weight-decay 0 --clip 1e9 --out @/wide");
  EXPECT_TRUE(WeightsOf(At("plain")) == WeightsOf(At("wide")));
  EXPECT_FALSE(WeightsOf(At("plain")) == WeightsOf(At("clipped")));
}

TEST_F(PrecisionEndToEnd, WeightsAreReadInAnyPrecision) {
  RunWell(ShortTraining(2) + "--precision fp16 --out @/run");
  const std::string init = " --init " + At("run") + "/weights.safetensors ";
  for (const char* precision : {"fp32", "fp16", "bf16"}) {
    RunWell(ShortTraining(1) + "--precision " + precision + init + "--out @/" + precision);
  }
  const auto evaluated = ParseObject(RunWell("eval @/run --json").out);
  EXPECT_EQ(evaluated["loss"], SummaryOf(At("run"))["test_loss"]);
}

TEST_F(PrecisionEndToEnd, AnotherPrecisionCannotBeResumed) {
  RunWell(ShortTraining(1) + "--precision fp16 --out @/run");
  ExpectRefusal(ShortTraining(2) + "--resume --extend --out @/run", 2,
                "--precision was 'fp16' and is now 'fp32'");
}

TEST_F(PrecisionEndToEnd, BadInput) {
  const std::string plan = "plan --model wrn-10-1 --batch 10 ";
  ExpectRefusal(plan + "--precision fp8", 2, "--precision fp8: expected fp32, fp16");
  ExpectRefusal(plan + "--store model=q8", 2, "only the optimizer's state as q8");
  ExpectRefusal(plan + "--store weights=fp16", 2, "expected CATEGORY=TYPE");
  ExpectRefusal(plan + "--store optimizer=int4", 2, "fp32, fp16, bf16 or q8");
  for (const char* scale : {"0", "-1", "nan", "inf", "1e999", "big"}) {
    ExpectRefusal(plan + "--loss-scale " + scale, 2, "expected auto, none or a number above 0");
  }
  ExpectRefusal(plan + "--loss-scale-factor 1", 2, "must be above 1");
  ExpectRefusal(plan + "--loss-scale-floor 0", 2, "must be above 0");
  ExpectRefusal(plan + "--loss-scale 1 --loss-scale-floor 2", 2, "is below --loss-scale-floor");
  ExpectRefusal(plan + "--clip -1", 2, "--clip -1: expected a number, at least 0");
  ExpectRefusal(plan + "--optimizer adamant", 2, "expected sgd");
}

}  // namespace
}  // namespace thimble
