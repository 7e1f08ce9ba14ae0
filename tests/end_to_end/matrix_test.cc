// All techniques with each other, on three networks: what is planned is measured, a stopped run
// goes on bit for bit, each technique has the exactness that it claims, and a budget finds room
// among the techniques that were not asked for. Pairs of techniques, and of techniques and
// networks, in every check; all combinations in the slow one.
#include <array>
#include <fstream>
#include <set>

#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

// Without any norm, so that parts of a batch change nothing but rounding.
constexpr const char* kPlainNetwork = R"(
[input]
height = 32
width = 32
channels = 3
classes = 10

[[layers]]
type = "conv"
name = "conv1"
channels = 8
stride = 2
padding = 1

[[layers]]
type = "relu"

[[layers]]
type = "conv"
name = "conv2"
channels = 16
stride = 2

[[layers]]
type = "relu"

[[layers]]
type = "global_avg_pool"

[[layers]]
type = "linear"
name = "fc"
features = "$classes"
)";

// The networks, then the options of a lever; the first one is the plain one.
using Levels = std::vector<std::string>;
const std::vector<Levels>& Matrix() {
  static const std::vector<Levels> matrix = {
      {"--model wrn-10-1", "--model wrn-10-1:group-norm=8,dropout=0.2",
       "--model @/plain.toml --sparse-layers conv*"},
      {"", "--recompute optimal"},
      {"", "--microbatch 3"},
      {"", "--precision fp16", "--precision bf16", "--precision mixed16"},
      {"", "--store optimizer=q8"},
      {"", "--update-in-backward"},
      {"", "--clip 0.5"},
      {"", "--loss-scale 1024"},
      {"", "--sparsity 0.6 --rewire-every 2"},
      {"", "--scratch 64KiB --fold-norms", "--conv winograd", "--bn-group 4"},
  };
  return matrix;
}
enum Column : size_t {
  kModelUsed,
  kRecompute,
  kMicrobatch,
  kPrecision,
  kStore,
  kInBackward,
  kClip,
  kScale,
  kSparsity,
  kOthers  // one at a time
};

// The level of each lever.
using Choice = std::vector<size_t>;

std::string OptionsOf(const Choice& choice) {
  std::string options;
  for (size_t column = 0; column < choice.size(); ++column) {
    options += Matrix()[column][choice[column]] + " ";
  }
  return options;
}

std::vector<Choice> AllChoices() {
  std::vector<Choice> choices = {Choice()};
  for (const Levels& levels : Matrix()) {
    std::vector<Choice> longer;
    for (const Choice& choice : choices) {
      for (size_t level = 0; level < levels.size(); ++level) {
        longer.push_back(choice);
        longer.back().push_back(level);
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// All combinations of levels of all columns but the last, whose levels take turns.
std::vector<Choice> ManyChoices() {
  std::vector<Choice> choices;
  const std::vector<Choice> all = AllChoices();
  const size_t levels = Matrix()[kOthers].size();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i][kOthers] == i / levels % levels) choices.push_back(all[i]);
  }
  return choices;
}

// The pairs of levels that a choice has.
using Pair = std::array<size_t, 4>;
std::vector<Pair> PairsOf(const Choice& choice) {
  std::vector<Pair> pairs;
  for (size_t a = 0; a < choice.size(); ++a) {
    for (size_t b = a + 1; b < choice.size(); ++b) pairs.push_back({a, choice[a], b, choice[b]});
  }
  return pairs;
}

// Few choices that have every pair: always the one with the most pairs that are missing.
std::vector<Choice> PairwiseChoices() {
  const std::vector<Choice> all = AllChoices();
  std::set<Pair> missing;
  for (const Choice& choice : all) {
    for (const Pair& pair : PairsOf(choice)) missing.insert(pair);
  }
  std::vector<Choice> chosen;
  while (!missing.empty()) {
    const Choice* best = nullptr;
    size_t most = 0;
    for (const Choice& choice : all) {
      size_t found = 0;
      for (const Pair& pair : PairsOf(choice)) found += missing.count(pair);
      if (found > most) best = &choice;
      most = std::max(most, found);
    }
    chosen.push_back(*best);
    for (const Pair& pair : PairsOf(chosen.back())) missing.erase(pair);
  }
  return chosen;
}

class MatrixEndToEnd : public NoReportFixture {
 protected:
  void SetUp() override {
    NoReportFixture::SetUp();
    std::ofstream(At("plain.toml")) << kPlainNetwork;
  }
  std::string Training(const std::string& options, const std::string& run, int steps) const {
    return "train --data shapes:17,5 --batch 7 --lr 0.01 --log-every 1 --threads 2 --eval-every 0 "
           "--device " +
           device_ + " --steps " + std::to_string(steps) + " " + options + " --out @/" + run +
           " --overwrite";
  }
  void Train(const std::string& options, const std::string& run, int steps = 3) {
    RunWell(Training(options, run, steps));
  }

  void Check(const Choice& choice) {
    const std::string options = OptionsOf(choice);
    SCOPED_TRACE(options);
    Train(options, "run");
    const auto summary = SummaryOf(At("run"));
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
    EXPECT_EQ(summary["map_calls_in_steps"], 0);
    CheckResuming(options);
    CheckClasses(choice);
    CheckBudget(choice, *summary["arena_bytes"].integer<int64_t>());
  }

  // Less memory than the options need: other techniques make up for it, or nothing is allocated.
  void CheckBudget(const Choice& choice, int64_t arena_bytes) {
    const int64_t budget = arena_bytes * 7 / 10;
    const ProcessResult result =
        Run(Training(OptionsOf(choice) + " --budget " + std::to_string(budget), "budget", 3));
    if (result.exit_code == 3) {
      // Without recompute and parts of a batch, there is much to choose from.
      EXPECT_FALSE(choice[kRecompute] == 0 && choice[kMicrobatch] == 0) << result.err;
      EXPECT_THAT(result.err, testing::HasSubstr("the smallest arena with what is allowed has"));
      return;
    }
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto summary = SummaryOf(At("budget"));
    EXPECT_LE(*summary["arena_bytes"].integer<int64_t>(), budget);
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
  }

  void CheckResuming(const std::string& options) {
    Train(options, "resumed", 2);
    std::string longer = Training(options, "resumed", 3);
    longer.replace(longer.find("--overwrite"), 11, "--resume --extend");
    RunWell(longer);
    EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("resumed"))) << "resumed";
  }

  // The same choice with the plain level of this lever.
  void TrainWithout(Choice choice, Column column) {
    choice[column] = 0;
    Train(OptionsOf(choice), "without");
  }
  void CheckClasses(const Choice& choice) {
    if (choice[kRecompute] != 0) {
      TrainWithout(choice, kRecompute);
      EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("without"))) << "recompute: same bits";
    }
    // On a GPU products are rounded to TF32, which turns small differences into larger ones too.
    if (choice[kMicrobatch] != 0 && IsEqualInParts(choice) && device_ == "cpu") {
      TrainWithout(choice, kMicrobatch);
      ExpectCloseLosses(1e-5);
    }
    if (OptionsOf(choice).find("--fold-norms") != std::string::npos) {
      TrainWithout(choice, kOthers);
      EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("without")))
          << "fold-norms, scratch: same bits";
    }
    if (choice[kInBackward] != 0) CheckUpdateInBackward(choice);
    // A power of two as the scale changes nothing but rounding in fp32.
    const bool all_fp32 = choice[kPrecision] == 0 && choice[kStore] == 0;
    if (choice[kScale] != 0 && all_fp32) {
      TrainWithout(choice, kScale);
      ExpectCloseLosses(1e-5);
    }
  }
  // Whether parts of a batch change only the order of additions. The first network has batch norm;
  // rounding to 16 or 8 bits and thresholds of sparse weights turn small differences into larger
  // ones.
  static bool IsEqualInParts(const Choice& choice) {
    return choice[kModelUsed] != 0 && choice[kPrecision] == 0 && choice[kStore] == 0 &&
           choice[kSparsity] == 0;
  }
  // Same bits with one part; equal to rounding with several, and where nothing is dropped. With
  // parts, fp16 momentum is rounded more often.
  void CheckUpdateInBackward(const Choice& choice) {
    TrainWithout(choice, kInBackward);
    if (choice[kMicrobatch] == 0) {
      EXPECT_TRUE(WeightsOf(At("run")) == WeightsOf(At("without"))) << "same bits in one part";
    } else {
      const bool short_state = choice[kPrecision] != 0 || choice[kStore] != 0;
      ExpectCloseLosses(short_state ? 0.05 : 1e-5);
    }
  }
  void ExpectCloseLosses(double tolerance) {
    const std::vector<double> losses = LossesOf(At("run"));
    const std::vector<double> expected = LossesOf(At("without"));
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], expected[i], tolerance * expected[i]) << "step " << i + 1;
    }
  }

  std::string device_ = "cpu";
};

// In shares, which run at the same time.
class SharedMatrixEndToEnd : public MatrixEndToEnd, public testing::WithParamInterface<size_t> {
 protected:
  void CheckShare(const std::vector<Choice>& choices, size_t shares) {
    for (size_t i = GetParam(); i < choices.size(); i += shares) Check(choices[i]);
  }
};
constexpr size_t kShares = 4;
constexpr size_t kSlowShares = 16;

TEST_P(SharedMatrixEndToEnd, EveryPairOfTechniques) {
  const std::vector<Choice> choices = PairwiseChoices();
  EXPECT_LT(choices.size(), 20U);
  CheckShare(choices, kShares);
}
INSTANTIATE_TEST_SUITE_P(All, SharedMatrixEndToEnd, testing::Range<size_t>(0, kShares));

class SlowMatrixEndToEnd : public SharedMatrixEndToEnd {};
TEST_P(SlowMatrixEndToEnd, EveryCombination) { CheckShare(ManyChoices(), kSlowShares); }
INSTANTIATE_TEST_SUITE_P(SlowAll, SlowMatrixEndToEnd, testing::Range<size_t>(0, kSlowShares));

class CudaMatrixEndToEnd : public MatrixEndToEnd {
 protected:
  void SetUp() override {
    MatrixEndToEnd::SetUp();
    THIMBLE_CUDA_OR_SKIP();
    device_ = "cuda";
  }
};

TEST_F(CudaMatrixEndToEnd, EveryPairOfTechniques) {
  for (Choice choice : PairwiseChoices()) {
    const std::string options = OptionsOf(choice);
    const bool is_for_cpu = options.find("winograd") != std::string::npos ||
                            options.find("fold-norms") != std::string::npos;
    if (is_for_cpu) choice[kOthers] = 0;
    Check(choice);
  }
}

}  // namespace
}  // namespace thimble
