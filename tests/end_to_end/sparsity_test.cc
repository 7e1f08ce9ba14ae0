// Sparse weights, from the command line to the files of the run.
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

// Rewires after steps 2 and 4.
std::string SparseTraining(int steps) {
  return "train --model wrn-10-1 --data shapes:40,7 --batch 10 --lr 0.02 --log-every 1 "
         "--sparsity 0.7 --rewire-every 2 --steps " +
         std::to_string(steps) + " ";
}

class SparsityEndToEnd : public NoReportFixture {};

TEST_F(SparsityEndToEnd, PlannedIsMeasuredForEveryMethod) {
  for (const std::string method : {"dsr", "set", "static"}) {
    RunWell(SparseTraining(5) + "--sparse-method " + method + " --out @/" + method);
    const auto summary = SummaryOf(At(method));
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << method;
    EXPECT_EQ(summary["heap_calls_in_steps"], 0) << method;
  }
  EXPECT_FALSE(WeightsOf(At("dsr")) == WeightsOf(At("set")));
  EXPECT_FALSE(WeightsOf(At("dsr")) == WeightsOf(At("static")));
}

TEST_F(SparsityEndToEnd, MetricsSayWhatMoved) {
  RunWell(SparseTraining(5) + "--out @/run");
  std::vector<int64_t> steps;
  for (const std::string& line : MetricsOf(At("run"))) {
    const auto json = ParseObject(line);
    if (!json.contains("moved_weights")) continue;
    steps.push_back(json["step"].get<int64_t>());
    EXPECT_GT(json["moved_weights"].get<int64_t>(), 0);
    EXPECT_GT(json["threshold"].get<double>(), 0);
    int64_t active = 0;
    for (const Json& count : json["active_weights"]) active += count.get<int64_t>();
    // (1 - 0.7) of six layers: 2304 * 2, 4608 + 9216, 18432 + 36864.
    EXPECT_EQ(active, 691 * 2 + 1382 + 2764 + 5529 + 11059);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4}));
}

TEST_F(SparsityEndToEnd, ContinuesBitForBitAcrossARewiring) {
  for (const std::string options :
       {"", "--precision fp16 --store optimizer=q8 --microbatch 4 --update-in-backward"}) {
    RunWell(SparseTraining(7) + options + " --out @/whole --overwrite");
    for (const int stop : {1, 2, 3}) {
      RunWell(SparseTraining(stop) + options + " --out @/parts --overwrite");
      RunWell(SparseTraining(7) + options + " --out @/parts --resume --extend");
      EXPECT_TRUE(WeightsOf(At("whole")) == WeightsOf(At("parts"))) << options << stop;
      EXPECT_TRUE(BytesAt(At("whole/weights.sparse.safetensors")) ==
                  BytesAt(At("parts/weights.sparse.safetensors")));
    }
  }
}

TEST_F(SparsityEndToEnd, SameBitsForAnyNumberOfThreads) {
  for (const std::string options : {"", "--precision bf16 --microbatch 4 --update-in-backward "}) {
    RunWell(SparseTraining(5) + options + "--threads 3 --out @/three --overwrite");
    RunWell(SparseTraining(5) + options + "--threads 1 --out @/one --overwrite");
    ExpectSameRun(At("three"), At("one"));
  }
}

TEST_F(SparsityEndToEnd, WeightsOfBothKindsLoadBack) {
  RunWell(SparseTraining(3) + "--out @/run");
  for (const std::string kind : {"weights", "weights.sparse"}) {
    RunWell(SparseTraining(1) + "--init @/run/" + kind + ".safetensors --out @/" + kind);
  }
  RunWell("eval @/run");
}

TEST_F(SparsityEndToEnd, BadInput) {
  const std::string train = "train --model wrn-10-1 --data shapes:40,7 --batch 10 --steps 1 ";
  for (const std::string wrong : {"1", "-0.1", "1.5", "nan", "much"}) {
    ExpectRefusal(train + "--sparsity " + wrong, 2, "--sparsity: '" + wrong + "': expected");
  }
  ExpectRefusal(train + "--sparsity 0.5 --sparse-layers nothing*", 2,
                "'nothing*' matches no filters of a convolution");
  ExpectRefusal(train + "--sparsity 0.5 --sparse-layers fc.weight", 2, "matches no filters");
  ExpectRefusal(train + "--sparsity 0.5 --sparse-method best", 2, "--sparse-method");
  ExpectRefusal(train + "--sparsity 0.5 --rewire-every 0", 2, "--rewire-every");
  ExpectRefusal("plan --model " + ExamplesFolder() + "/models/mlp.toml" + " --sparsity 0.5", 2,
                "the model has nothing to make sparse");
}

TEST_F(SparsityEndToEnd, RefusesACheckpointOfAnotherSparsity) {
  RunWell(SparseTraining(2) + "--out @/run");
  std::string other = SparseTraining(3) + "--out @/run --resume --extend";
  other.replace(other.find("0.7"), 3, "0.5");
  ExpectRefusal(other, 2, "sparsity");
}

}  // namespace
}  // namespace thimble
