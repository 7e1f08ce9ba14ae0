#include "thimble/train/planning/budget_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/program/techniques.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

class BudgetSearchTest : public testing::Test {
 protected:
  BudgetSearchTest() {
    config_ = TinyConfig();
    config_.batch = 24;
  }
  Result<BudgetChoice> Choose(int64_t budget_bytes, const std::string& allow = "lossy") {
    TrainConfig config = config_;
    config.budget_bytes = budget_bytes;
    config.allow = allow;
    return ChooseOrAdvise(config, sizer_);
  }
  int64_t ArenaOf(const TrainConfig& config) const {
    EXPECT_TRUE(CheckConfig(config).ok()) << CheckConfig(config).error().message;
    const auto program = MakeTrainingProgram(config, model_, {}, BuiltinOps());
    EXPECT_TRUE(program.ok());
    return static_cast<int64_t>(program->program.arena_bytes);
  }

  TrainConfig config_;
  ImageClassifier model_ = FindModel("wrn-10-1", ImageSpec{}).value();
  PlanSizer sizer_{TaskOf(model_, {}), BuiltinOps()};
};

TEST_F(BudgetSearchTest, ChoosesNothingIfItFits) {
  const int64_t plain = ArenaOf(config_);
  for (const int64_t budget : {int64_t{0}, plain, 2 * plain}) {
    const auto choice = Choose(budget);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_TRUE(choice->levers.empty()) << choice->options();
    EXPECT_EQ(ToString(*choice), "");
  }
}

// Every choice is within its budget, as planned for a run, and costs no less accuracy than that of
// a larger budget.
TEST_F(BudgetSearchTest, FitsEveryBudgetDownToTheFloor) {
  double lost_points = 0;
  bool fits = true;
  for (int64_t budget = ArenaOf(config_) - 1; budget > 100'000; budget /= 5) {
    const auto choice = Choose(budget);
    if (!choice.ok()) {
      EXPECT_EQ(choice.error().kind, ErrorKind::kDoesNotFit);
      EXPECT_THAT(choice.error().message, HasSubstr("the smallest arena with what is allowed has"));
      fits = false;
      continue;
    }
    EXPECT_TRUE(fits) << budget << " fits, but a larger budget did not";
    EXPECT_LE(choice->arena_bytes, budget);
    EXPECT_EQ(ArenaOf(choice->config), choice->arena_bytes) << choice->options();
    EXPECT_GE(choice->lost_points(), lost_points) << choice->options();
    lost_points = choice->lost_points();
  }
  EXPECT_FALSE(fits) << "the smallest budget should not fit";
  EXPECT_GT(lost_points, 0);
}

TEST_F(BudgetSearchTest, PrefersTheSameBits) {
  const auto choice = Choose(ArenaOf(config_) * 9 / 10);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_FALSE(choice->levers.empty());
  for (const ChosenLever& lever : choice->levers) EXPECT_EQ(lever.exactness, "same-bits");
  EXPECT_THAT(ToString(*choice), HasSubstr("(same-bits), arena "));
  EXPECT_THAT(ToString(*choice), Not(HasSubstr("predicted")));
  EXPECT_LT(choice->smallest_bytes, choice->arena_bytes);
  EXPECT_EQ(choice->beyond, "--microbatch 20");
}

// Kernels with little scratch memory are slow on one made-up machine and fast on another.
TEST_F(BudgetSearchTest, PredictedTimeDecidesWhatKeepsTheSameBits) {
  TrainConfig config = config_;
  config.scratch_bytes = 64 << 10;
  config.levers["update-in-backward"] = "true";
  const auto program = MakeTrainingProgram(config, model_, {}, BuiltinOps());
  ASSERT_TRUE(program.ok());
  const auto choose = [&](double little, double plenty) {
    OpTimes::Samples samples;
    for (const Step& step : program->main_plan().steps) {
      std::string kind = KindOf(program->main_plan(), step, BuiltinOps());
      samples[kind] = {{{1, 1}, kind.find('/') == std::string::npos ? plenty : little}};
      samples[kind.substr(0, kind.find('/'))] = {{{1, 1}, plenty}};
    }
    config = config_;
    config.budget_bytes = ArenaOf(config_) * 9 / 10;
    config.allow = "recompute,scratch";
    return ChooseForBudget(config,
                           PlanSizer(TaskOf(model_, {}), BuiltinOps(), OpTimes(samples, 1)));
  };
  const auto slow = choose(1, 1e-3);
  ASSERT_TRUE(slow.ok()) << slow.error().message;
  EXPECT_THAT(slow->options(), Not(HasSubstr("--scratch")));
  EXPECT_GT(slow->step_seconds, 0);
  EXPECT_LT(slow->step_seconds, 1);
  EXPECT_THAT(ToString(*slow), HasSubstr("predicted "));
  const auto fast = choose(1e-6, 1e-3);
  ASSERT_TRUE(fast.ok()) << fast.error().message;
  EXPECT_THAT(fast->options(), HasSubstr("--scratch"));
}

// What changes results is chosen for one thread; fewer threads than asked for are part of the
// choice.
TEST_F(BudgetSearchTest, ResultsDoNotDependOnThreads) {
  constexpr int64_t kBudget = 1'200'000;
  config_.threads = 1;
  const auto one = Choose(kBudget);
  config_.threads = 8;
  const auto eight = Choose(kBudget);
  ASSERT_TRUE(one.ok() && eight.ok());
  for (const char* name : {"microbatch", "precision", "store", "sparsity"}) {
    const Lever& lever = *FindLever(name);
    EXPECT_EQ(ValueOf(lever, one->config), ValueOf(lever, eight->config)) << name;
  }
  EXPECT_LE(ResolvedThreads(eight->config), 8);
  EXPECT_EQ(eight->threads == 0, ResolvedThreads(eight->config) == 8);
}

// A little less memory costs a little more sparsity, not the next value in a list.
TEST_F(BudgetSearchTest, TakesNoMoreSparsityThanItNeeds) {
  double lost_points = 0;
  std::set<std::string> fractions;
  for (int64_t budget = 600'000; budget >= 420'000; budget -= 45'000) {
    const auto choice = Choose(budget);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_GE(choice->lost_points(), lost_points) << budget << ": " << choice->options();
    lost_points = choice->lost_points();
    fractions.insert(ValueOf(*FindLever("sparsity"), choice->config));
  }
  EXPECT_GE(fractions.size(), 4U);
}

TEST_F(BudgetSearchTest, ChoosesOnlyWhatIsAllowed) {
  const auto choice = Choose(2'000'000, "recompute,microbatch>=8,fp16");
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_THAT(choice->options(), Not(HasSubstr("--sparsity")));
  EXPECT_THAT(choice->options(), Not(HasSubstr("--store")));
  EXPECT_GE(choice->config.microbatch, 8);
  const auto refused = Choose(2'000'000, "same-bits");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("--allow lossy would choose --"));
}

// Levers that were set stay as they are.
TEST_F(BudgetSearchTest, KeepsWhatWasAskedFor) {
  config_.levers["precision"] = "bf16";
  config_.microbatch = 30;
  const auto choice = Choose(5'000'000);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->config.levers.at("precision"), "bf16");
  EXPECT_EQ(choice->config.microbatch, 30);
  EXPECT_THAT(choice->options(), Not(HasSubstr("--precision")));
}

}  // namespace
}  // namespace thimble
