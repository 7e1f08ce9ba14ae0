// Networks with dropout and group norm in the whole program: the same bits in every configuration,
// and model names with options wherever a name is accepted.
#include "tests/end_to_end/profile_checks.h"
#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

using testing::HasSubstr;

constexpr const char* kNames[] = {"wrn-10-1:dropout=0.3", "wrn-10-1:group-norm=8",
                                  "wrn-10-1:group-norm=8,dropout=0.3"};

class ModelOptionsEndToEnd : public NoReportFixture {
 protected:
  static std::string Options(const std::string& model) {
    return "train --model " + model +
           " --data shapes:22,6 --batch 8 --lr 0.05 --epochs 2 --log-every 1 --validation 0 "
           "--checkpoint-every 2 ";
  }
  std::string Train(const std::string& name, const std::string& options) const {
    RunWell(options + " --out @/" + name);
    return At(name);
  }
};

TEST_F(ModelOptionsEndToEnd, ThreadsAndPassesChangeNoBit) {
  for (const char* model : kNames) {
    SCOPED_TRACE(model);
    const std::string base = Options(model);
    const std::string one = Train(std::string("one-") + model, base + "--threads 1");
    EXPECT_EQ(SummaryOf(one)["planned_peak_bytes"], SummaryOf(one)["measured_peak_bytes"]);
    EXPECT_EQ(SummaryOf(one)["heap_calls_in_steps"], 0);
    ExpectSameRun(one, Train(std::string("two-") + model, base + "--threads 2"));
    ExpectSameRun(one, Train(std::string("plain-") + model,
                             base + "--threads 2 --prefetch 0 --without order,in-place,placement"));
  }
}

TEST_F(ModelOptionsEndToEnd, EveryOptionChangesTheTraining) {
  const std::string plain = WeightsOf(Train("plain", Options("wrn-10-1")));
  Words seen = {plain};
  for (const char* model : kNames) {
    const std::string weights = WeightsOf(Train(model, Options(model)));
    EXPECT_THAT(seen, testing::Not(testing::Contains(weights))) << model;
    seen.push_back(weights);
  }
}

TEST_F(ModelOptionsEndToEnd, GoesOnAfterAStopBitForBit) {
  const std::string options =
      Options("wrn-10-1:group-norm=8,dropout=0.3") + "--schedule constant --threads ";
  const std::string whole = Train("whole", options + "1");
  // Stopped in the second epoch, whose draws are not those of the first.
  Train("run", options + "2 --steps 4");
  EXPECT_FALSE(WeightsOf(At("run")) == WeightsOf(whole));
  Train("run", options + "1 --resume --extend");
  EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(whole));
}

TEST_F(ModelOptionsEndToEnd, EvaluationDropsNothing) {
  const std::string run = Train("run", Options("wrn-10-1:dropout=0.5"));
  auto dropping = ParseObject(RunWell("eval @/run --json").out);
  EXPECT_EQ(dropping["accuracy"], SummaryOf(run)["test_accuracy"]);
  auto plain = ParseObject(
      RunWell("eval --weights @/run/weights.safetensors --model wrn-10-1 --data shapes:22,6 "
              "--batch 8 --json")
          .out);
  EXPECT_EQ(plain["loss"], dropping["loss"]);
}

TEST_F(ModelOptionsEndToEnd, WeightsOfGroupNormHaveNoStatistics) {
  const std::string run = Train("run", Options("wrn-10-1:group-norm=4"));
  EXPECT_THAT(WeightsOf(run), testing::Not(HasSubstr("running_mean")));
  RunWell(
      "eval --weights @/run/weights.safetensors --model wrn-10-1:group-norm=4 "
      "--data shapes:22,6 --batch 8");
  ExpectRefusal("eval --weights @/run/weights.safetensors --model wrn-10-1 --data shapes:22,6", 2,
                "running_mean");
}

TEST_F(ModelOptionsEndToEnd, ProfilesAndPlans) {
  for (const char* model : kNames) {
    const std::string options = std::string(" --model ") + model + " --batch 4 --json";
    ExpectMeasuredAsPlanned(ParseObject(RunWell("profile" + options).out), options);
    EXPECT_EQ(ParseObject(RunWell("plan" + options).out)["model"], model);
  }
}

TEST_F(ModelOptionsEndToEnd, AModelFileHasBothLayers) {
  Put(At("net.toml"), R"(layers = [
  { type = "conv", name = "conv", channels = 8, padding = 1 },
  { type = "group_norm", name = "norm", groups = 2 },
  { type = "relu" },
  { type = "dropout", percent = 30 },
  { type = "global_avg_pool" },
  { type = "linear", name = "fc", features = "$classes" },
]
[input]
height = 32
width = 32
channels = 3
classes = 10
)");
  const std::string options = Options("@/net.toml");
  ExpectSameRun(Train("one", options + "--threads 1"), Train("two", options + "--threads 2"));
}

TEST_F(ModelOptionsEndToEnd, BadOptions) {
  const std::string rest = " --data shapes:22,6 --out @/run";
  ExpectRefusal("train --model wrn-10-1:dropout=1" + rest, 2, "at least 0 and below 1");
  ExpectRefusal("train --model wrn-10-1:group-norm=5" + rest, 2, "into groups of 5");
  ExpectRefusal("plan --model wrn-10-1:batch-norm=8", 2, "unknown option 'batch-norm'");
  EXPECT_FALSE(std::filesystem::exists(At("run")));
}

TEST_F(ModelOptionsEndToEnd, ResumeWantsTheSameOptions) {
  Train("run", Options("wrn-10-1:dropout=0.3"));
  ExpectRefusal(Options("wrn-10-1:dropout=0.2") + "--out @/run --resume", 2,
                "started with different settings");
}

class CudaModelOptionsEndToEnd : public ModelOptionsEndToEnd {
 protected:
  void SetUp() override {
    ModelOptionsEndToEnd::SetUp();
    THIMBLE_CUDA_OR_SKIP();
  }
};

TEST_F(CudaModelOptionsEndToEnd, SameBitsTwiceAndAfterAStop) {
  for (const char* model : kNames) {
    SCOPED_TRACE(model);
    const std::string base = Options(model) + "--device cuda --schedule constant";
    const std::string one = Train(std::string("one-") + model, base);
    EXPECT_EQ(SummaryOf(one)["planned_peak_bytes"], SummaryOf(one)["measured_peak_bytes"]);
    ExpectSameRun(one, Train(std::string("two-") + model, base));
    Train(std::string("run-") + model, base + " --steps 4");
    EXPECT_TRUE(WeightsOf(Train(std::string("run-") + model, base + " --resume --extend")) ==
                WeightsOf(one));
  }
}

// Any different draw would change the first loss.
TEST_F(CudaModelOptionsEndToEnd, DropsWhatTheCpuDrops) {
  const std::string base = Options("wrn-10-1:group-norm=8,dropout=0.3") + "--steps 1 ";
  const auto loss = [&](const std::string& run) {
    return ParseObject(MetricsOf(run).front())["loss"].get<double>();
  };
  EXPECT_NEAR(loss(Train("cuda", base + "--device cuda --math fp32")),
              loss(Train("cpu", base + "--device cpu")), 1e-5);
}

}  // namespace
}  // namespace thimble
