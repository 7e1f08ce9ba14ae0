// All techniques with each other: what is planned is measured, a stopped run goes on bit for bit,
// and each technique has the exactness that it claims. Pairs of techniques in every check, all
// combinations in the slow one.
#include <array>
#include <set>

#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/cuda_or_skip.h"

namespace thimble {
namespace {

// The options of a lever; the first one is the plain one.
using Levels = std::vector<std::string>;
const std::vector<Levels>& Matrix() {
  static const std::vector<Levels> matrix = {
      {"", "--recompute optimal"},
      {"", "--microbatch 3"},
      {"", "--precision fp16", "--precision bf16", "--precision mixed16"},
      {"", "--store optimizer=q8"},
      {"", "--update-in-backward"},
      {"", "--clip 0.5"},
      {"", "--loss-scale 1024"},
      {"", "--sparsity 0.6 --rewire-every 2"},
  };
  return matrix;
}
enum Column : size_t {
  kRecompute,
  kMicrobatch,
  kPrecision,
  kStore,
  kInBackward,
  kClip,
  kScale,
  kSparsity
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

// The pairs of levels that a choice has.
using Pair = std::array<size_t, 4>;
std::set<Pair> PairsOf(const Choice& choice) {
  std::set<Pair> pairs;
  for (size_t a = 0; a < choice.size(); ++a) {
    for (size_t b = a + 1; b < choice.size(); ++b) pairs.insert({a, choice[a], b, choice[b]});
  }
  return pairs;
}

// Few choices that have every pair: always the one with the most pairs that are missing.
std::vector<Choice> PairwiseChoices() {
  const std::vector<Choice> all = AllChoices();
  std::set<Pair> missing;
  for (const Choice& choice : all) missing.merge(PairsOf(choice));
  std::vector<Choice> chosen;
  while (!missing.empty()) {
    const auto count = [&](const Choice& choice) {
      size_t found = 0;
      for (const Pair& pair : PairsOf(choice)) found += missing.count(pair);
      return found;
    };
    chosen.push_back(
        *std::max_element(all.begin(), all.end(),
                          [&](const Choice& a, const Choice& b) { return count(a) < count(b); }));
    for (const Pair& pair : PairsOf(chosen.back())) missing.erase(pair);
  }
  return chosen;
}

class MatrixEndToEnd : public NoReportFixture {
 protected:
  std::string Training(const std::string& options, const std::string& run, int steps) const {
    return "train --model wrn-10-1 --data shapes:17,5 --batch 7 --lr 0.01 --log-every 1 "
           "--threads " +
           std::string("2 --eval-every 0 --device ") + device_ + " --steps " +
           std::to_string(steps) + " " + options + " --out @/" + run + " --overwrite";
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
    if (choice[kInBackward] != 0) CheckUpdateInBackward(choice);
    // A power of two as the scale changes nothing but rounding in fp32.
    const bool all_fp32 = choice[kPrecision] == 0 && choice[kStore] == 0;
    if (choice[kScale] != 0 && all_fp32) {
      TrainWithout(choice, kScale);
      ExpectCloseLosses(1e-5);
    }
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

TEST_F(MatrixEndToEnd, EveryPairOfTechniques) {
  const std::vector<Choice> choices = PairwiseChoices();
  EXPECT_LT(choices.size(), 20U);
  for (const Choice& choice : choices) Check(choice);
}

// In shares, which run at the same time.
class SlowMatrixEndToEnd : public MatrixEndToEnd, public testing::WithParamInterface<size_t> {};
constexpr size_t kShares = 8;

TEST_P(SlowMatrixEndToEnd, EveryCombination) {
  const auto choices = AllChoices();
  for (size_t i = GetParam(); i < choices.size(); i += kShares) Check(choices[i]);
}
INSTANTIATE_TEST_SUITE_P(SlowAll, SlowMatrixEndToEnd, testing::Range<size_t>(0, kShares));

class CudaMatrixEndToEnd : public MatrixEndToEnd {
 protected:
  void SetUp() override {
    MatrixEndToEnd::SetUp();
    THIMBLE_CUDA_OR_SKIP();
    device_ = "cuda";
  }
};

TEST_F(CudaMatrixEndToEnd, EveryPairOfTechniques) {
  for (const Choice& choice : PairwiseChoices()) Check(choice);
}

}  // namespace
}  // namespace thimble
