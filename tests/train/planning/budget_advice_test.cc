#include "thimble/train/planning/budget_advice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class BudgetAdviceTest : public testing::Test {
 protected:
  // A test set of 30 images.
  static TaskPtr Evaluated() {
    return ImageTaskOf(TinyConfig(), ImageSpec{}, {.test = 30}).value();
  }
  PlanSizer Sizer() const { return PlanSizer(TaskOf(model_, counts_), BuiltinOps()); }
  // Planned in the same way as a run.
  int64_t ArenaOf(const TrainConfig& config) const {
    EXPECT_TRUE(CheckConfig(config).ok()) << CheckConfig(config).error().message;
    const auto program = MakeTrainingProgram(config, model_, counts_, BuiltinOps());
    EXPECT_TRUE(program.ok());
    return static_cast<int64_t>(program->program.arena_bytes);
  }
  int64_t ArenaOfBatch(int64_t batch) const {
    TrainConfig config = config_;
    config.batch = batch;
    return ArenaOf(config);
  }
  // The configuration with the options of an advice.
  TrainConfig With(const std::string& options) const {
    TrainConfig config = config_;
    std::istringstream words(options);
    for (std::string name, value; words >> name;) {
      const Option& option = *FindOption(name.substr(2));
      value = "true";
      if (option.kind != OptionKind::kSwitch) words >> value;
      EXPECT_TRUE(option.set(config, value).ok()) << name << " " << value;
    }
    return config;
  }
  // Checks that advice fits, with the stated bytes, and that no larger batch fits.
  void ExpectTrue(const BudgetAdvice& advice) const {
    for (const Advice& fitting : advice.fitting) {
      EXPECT_EQ(ArenaOf(With(fitting.options)), fitting.arena_bytes) << fitting.options;
      EXPECT_LE(fitting.arena_bytes, config_.budget_bytes) << fitting.options;
    }
    EXPECT_EQ(advice.smallest.has_value(), advice.fitting.empty());
    if (advice.smallest) {
      EXPECT_EQ(ArenaOf(With(advice.smallest->options)), advice.smallest->arena_bytes);
      EXPECT_GT(advice.smallest->arena_bytes, config_.budget_bytes);
    }
    const int64_t lowest = std::max({int64_t{1}, config_.microbatch, config_.bn_group});
    const int64_t batch = advice.largest_batch;
    EXPECT_TRUE(batch == 0 || batch >= lowest) << batch;
    EXPECT_TRUE(batch == 0 || ArenaOfBatch(batch) <= config_.budget_bytes) << batch;
    for (int64_t above = std::max(batch + 1, lowest); above <= config_.batch; ++above) {
      EXPECT_GT(ArenaOfBatch(above), config_.budget_bytes) << above << " fits, not only " << batch;
    }
  }
  void TryRandomConfigurations(unsigned seed, int count);

  TrainConfig config_ = TinyConfig();
  ImageCounts counts_;
  ImageClassifier model_ = FindModel("wrn-10-1", ImageSpec{}).value();
};

std::string Describe(const TrainConfig& config, const ImageCounts& counts) {
  return fmt::format("batch {} microbatch {} recompute {} conv {} bn-group {} train {} test {}",
                     config.batch, config.microbatch, config.recompute, config.conv,
                     config.bn_group, counts.train, counts.test) +
         fmt::format(" budget {}", config.budget_bytes);
}

void BudgetAdviceTest::TryRandomConfigurations(unsigned seed, int count) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int i = 0; i < count; ++i) {
    config_ = TinyConfig();
    config_.threads = 1 + below(2);
    config_.batch = 2 + below(20);
    if (below(2) == 0) config_.microbatch = 1 + below(config_.batch);
    if (below(3) == 0) config_.bn_group = 1 + below(config_.batch);
    config_.recompute = std::array{"none", "none", "cheap", "blocks"}[below(4)];
    config_.conv = below(4) == 0 ? "winograd" : "direct";
    counts_ =
        below(3) == 0 ? ImageCounts{} : ImageCounts{config_.batch + below(60), 0, 1 + below(50)};
    const int64_t needed = ArenaOf(config_);
    config_.budget_bytes = std::max<int64_t>(1, below(3) == 0 ? needed - 1 : below(needed));
    SCOPED_TRACE(Describe(config_, counts_));
    const auto advice = AdviseTraining(config_, Sizer());
    ASSERT_TRUE(advice.ok()) << advice.error().message;
    ExpectTrue(*advice);
  }
}

TEST_F(BudgetAdviceTest, HoldsForRandomConfigurations) { TryRandomConfigurations(1, 3); }
class SlowBudgetAdvice : public BudgetAdviceTest {};
TEST_F(SlowBudgetAdvice, HoldsForManyConfigurations) { TryRandomConfigurations(2, 150); }

TEST_F(BudgetAdviceTest, TheLargestBatchFitsAndTheNextDoesNot) {
  config_.batch = 64;
  config_.budget_bytes = ArenaOfBatch(17) + 100;
  EXPECT_EQ(*LargestBatchWithin(config_, Sizer()), 17);
  config_.budget_bytes = ArenaOfBatch(64);
  EXPECT_EQ(*LargestBatchWithin(config_, Sizer()), 64);
  config_.budget_bytes = ArenaOfBatch(1) - 1;
  EXPECT_EQ(*LargestBatchWithin(config_, Sizer()), 0);
}

// A batch of 60 has four parts of 15; every larger batch has a part of 16.
TEST_F(BudgetAdviceTest, TheLargestBatchInParts) {
  config_.batch = 64;
  config_.microbatch = 16;
  config_.budget_bytes = ArenaOf(config_) - 1;
  EXPECT_EQ(*LargestBatchWithin(config_, Sizer()), 60);
  // The 16 images after a batch of 60 are one part; the 17 after a batch of 59 are two.
  counts_ = {76, 0, 5};
  EXPECT_EQ(*LargestBatchWithin(config_, Sizer()), 59);
}

// Advice respects the limits of the options.
TEST_F(BudgetAdviceTest, NoBatchBelowAMicrobatch) {
  config_.batch = 20;
  config_.microbatch = 16;
  TrainConfig small = config_;
  small.batch = 8;  // parts of 16 samples or more have at least 8 or 9
  small.microbatch = 0;
  config_.budget_bytes = ArenaOf(small);
  EXPECT_EQ(*LargestBatchWithin(config_, Sizer()), 0);
}

// Larger parts exceed the limit, so they cannot be planned.
TEST_F(BudgetAdviceTest, OfALimitForRecompute) {
  config_.recompute = "optimal";
  config_.recompute = fmt::format("optimal:{}", ArenaOf(config_));
  config_.budget_bytes = ArenaOf(config_) - 1;
  const auto advice = AdviseTraining(config_, Sizer());
  ASSERT_TRUE(advice.ok()) << advice.error().message;
  ExpectTrue(*advice);
}

TEST_F(BudgetAdviceTest, SaysWhereNothingFits) {
  config_.budget_bytes = 1000;
  const BudgetAdvice advice = AdviseTraining(config_, Sizer()).value();
  ExpectTrue(advice);
  EXPECT_THAT(ToString(advice), testing::StartsWith("none of the options tried fits; the smallest: "
                                                    "--microbatch 1 --precision fp16 "
                                                    "--update-in-backward --sparsity 0.8 "
                                                    "--recompute optimal --scratch 64KiB ("));
}

TEST_F(BudgetAdviceTest, TrainingThatDoesNotFitIsRefusedWithAdvice) {
  const auto planned = MakeTrainingProgram(config_, model_, counts_, BuiltinOps()).value();
  config_.budget_bytes = ArenaOf(config_);
  EXPECT_TRUE(CheckTrainingBudget(config_, planned, BuiltinOps()).ok());
  --config_.budget_bytes;
  const auto refused = CheckTrainingBudget(config_, planned, BuiltinOps());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kDoesNotFit);
  for (const char* option : {"would fit: --batch 3 (", "--microbatch 3 (", "--recompute optimal (",
                             "lossy: batch-norm statistics per 2 samples"}) {
    EXPECT_THAT(refused.error().message, HasSubstr(option));
  }
}

// Evaluation has no --microbatch and nothing to recompute.
TEST_F(BudgetAdviceTest, EvaluationHasAdviceOfItsOwn) {
  config_.batch = 20;
  config_.threads = 2;
  const auto arena_of = [&](const TrainConfig& config) {
    return static_cast<int64_t>(
        MakeEvaluationProgram(config, Evaluated(), DataPart::kTest, BuiltinOps())
            ->program.arena_bytes);
  };
  const auto planned =
      MakeEvaluationProgram(config_, Evaluated(), DataPart::kTest, BuiltinOps()).value();
  config_.budget_bytes = arena_of(With("--batch 7"));
  const BudgetAdvice advice =
      AdviseEvaluation(config_, Evaluated(), DataPart::kTest, BuiltinOps()).value();
  ASSERT_FALSE(advice.fitting.empty());
  EXPECT_EQ(advice.fitting[0].options, "--batch 7");
  for (const Advice& fitting : advice.fitting) {
    EXPECT_EQ(arena_of(With(fitting.options)), fitting.arena_bytes) << fitting.options;
    EXPECT_LE(fitting.arena_bytes, config_.budget_bytes);
  }
  const auto refused = CheckEvaluationBudget(config_, planned, DataPart::kTest, BuiltinOps());
  EXPECT_THAT(refused.error().message, HasSubstr("would fit: --batch 7 ("));
  config_.budget_bytes = 1000;
  const BudgetAdvice nothing =
      AdviseEvaluation(config_, Evaluated(), DataPart::kTest, BuiltinOps()).value();
  ASSERT_TRUE(nothing.smallest.has_value());
  EXPECT_EQ(nothing.smallest->options, "--batch 1 --threads 1 --precision fp16 --scratch 64KiB");
  EXPECT_EQ(nothing.smallest->arena_bytes, arena_of(With(nothing.smallest->options)));
}

}  // namespace
}  // namespace thimble
