// A technique is one folder and one line: this one is added here, and appears everywhere that users
// see techniques.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/file_fixture.h"
#include "tests/train/image_programs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/program/techniques.h"
#include "thimble/report/pages/report_page.h"
#include "thimble/report/pages/run_text.h"
#include "thimble/train/loop/evaluate_run.h"
#include "thimble/train/loop/trainer.h"
#include "thimble/train/options/options.h"
#include "thimble/train/planning/budget_advice.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/planning/savings.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

// Trains batches in two halves.
class Halves final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {
        .name = "halves", .exactness = Exactness::kLossy, .what = "train a batch in two halves"};
  }
  const Lever* lever() const override {
    static const Lever lever{
        .name = "halves",
        .takes = "no|yes",
        .help = "train batches in two halves",
        .what = "train a batch in two halves",
        .plain = "no",
        .decides_results = true,
        .training_only = true,
        .worth_trying =
            [](const LeverSetting& setting) {
              return setting.value == "no" ? std::vector<std::string>{"yes"}
                                           : std::vector<std::string>{};
            },
        .exactness = [](const Graph&, const LeverSetting&) { return std::string("lossy"); }};
    return &lever;
  }
  std::string CutBatch(const std::string& value, const BatchShape& /*shape*/,
                       NearlyEqualParts& parts) const override {
    if (value != "yes") return {};
    parts.parts = 2;
    return "2 halves";
  }
};

class AddedTechniqueTest : public FileFixture {
 protected:
  static TrainConfig Config(const std::string& halves) {
    TrainConfig config;
    config.model = "wrn-10-1";
    config.batch = 8;
    EXPECT_TRUE(FindOption("halves")->set(config, halves).ok());
    return config;
  }
  static TrainingProgram Make(const TrainConfig& config) {
    auto program = MakeTrainingProgram(config, ImageSpec{}, ImageCounts{}, BuiltinOps());
    EXPECT_TRUE(program.ok()) << program.error().message;
    return std::move(program).value();
  }

  const AddedTechnique added_{std::make_unique<Halves>()};
};

TEST_F(AddedTechniqueTest, IsAnOptionOfTheCommandLineAndOfFiles) {
  const Option* option = FindOption("halves");
  ASSERT_NE(option, nullptr);
  EXPECT_EQ(option->help, "train batches in two halves");
  EXPECT_EQ(option->value, "no|yes");
  EXPECT_EQ(option->group, std::string_view(option_group::kMemory));
  EXPECT_THAT(ToToml(Config("yes")), HasSubstr("halves = \"yes\""));
  EXPECT_FALSE(CheckConfig(Config("perhaps")).ok());
  EXPECT_THAT(FirstDifference(Config("yes"), Config("no")), HasSubstr("--halves"));
}

TEST_F(AddedTechniqueTest, IsNoPartOfThePlainPlan) {
  EXPECT_TRUE(IsPlain(Config("no")));
  EXPECT_FALSE(IsPlain(Config("yes")));
  EXPECT_TRUE(IsPlain(PlainConfig(Config("yes"))));
}

TEST_F(AddedTechniqueTest, ChangesTheProgramAndIsRecorded) {
  const TrainingProgram plain = Make(Config("no"));
  const TrainingProgram halves = Make(Config("yes"));
  EXPECT_LT(halves.program.arena_bytes, plain.program.arena_bytes);
  EXPECT_EQ(halves.program.names[0], "train 4 of 8");
  const ProgramRecord record =
      RecordOf(halves, BuiltinOps(), static_cast<int64_t>(plain.program.arena_bytes));
  const TechniqueRecord& technique = record.plans[0].techniques.front();
  EXPECT_EQ(technique.name, "halves");
  EXPECT_EQ(technique.exactness, "lossy");
  EXPECT_EQ(technique.done, "2 halves");
  EXPECT_GT(technique.saved_bytes, 0);
}

TEST_F(AddedTechniqueTest, IsOfferedWithItsBytes) {
  const ImageClassifier model = FindModel("wrn-10-1", ImageSpec{}).value();
  const PlanSizer sizer(TaskOf(model, {}), BuiltinOps());
  const auto savings = FindSavings(Config("no"), sizer);
  ASSERT_TRUE(savings.ok()) << savings.error().message;
  EXPECT_THAT(savings->offered, Contains(Field(&TechniqueSaving::name, "--halves yes")));
  for (const TechniqueSaving& offered : savings->offered) {
    if (offered.name != "--halves yes") continue;
    EXPECT_LT(offered.arena_bytes, savings->asked_arena_bytes);
    EXPECT_EQ(offered.what, "train a batch in two halves");
  }
}

TEST_F(AddedTechniqueTest, IsAdvisedWhereTheBudgetIsTooSmall) {
  const ImageClassifier model = FindModel("wrn-10-1", ImageSpec{}).value();
  TrainConfig config = Config("no");
  config.budget_bytes = static_cast<int64_t>(Make(Config("yes")).program.arena_bytes);
  const auto advice = AdviseTraining(config, PlanSizer(TaskOf(model, {}), BuiltinOps()));
  ASSERT_TRUE(advice.ok()) << advice.error().message;
  EXPECT_THAT(advice->fitting, Contains(Field(&Advice::options, "--halves yes")));
}

TEST_F(AddedTechniqueTest, IsChosenForABudget) {
  const ImageClassifier model = FindModel("wrn-10-1", ImageSpec{}).value();
  TrainConfig config = Config("no");
  config.allow = "halves";
  config.budget_bytes = static_cast<int64_t>(Make(Config("yes")).program.arena_bytes);
  const auto choice = ChooseForBudget(config, PlanSizer(TaskOf(model, {}), BuiltinOps()));
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->options(), "--halves yes");
}

// Planned and measured memory agree, or Train would fail.
TEST_F(AddedTechniqueTest, IsTrainedEvaluatedAndReported) {
  TrainConfig config = Config("yes");
  config.data = "shapes:20,6";  // the last batch has 4 images
  config.threads = 1;
  config.out = folder_ + "/run";
  TrainObserver silent;
  const auto summary = Train(config, BuiltinOps(), silent);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->steps, 3);
  EXPECT_EQ(EvaluationConfig(config).batch, 4);
  EXPECT_EQ(ValueOf(*FindLever("halves"), EvaluationConfig(config)), "no");
  auto run = ReadRunFolder(config.out);
  ASSERT_TRUE(run.ok()) << run.error().message;
  run->savings = FindRunSavings(*run, BuiltinOps());
  EXPECT_THAT(WhatRuns(*run), HasSubstr("batch 8 in parts of 4"));
  EXPECT_EQ(run->plan().techniques.front().done, "2 halves");
  ASSERT_TRUE(run->savings.has_value());
  const std::string page = ReportPage(*run);  // the option, in the chart of savings
  EXPECT_THAT(page.substr(page.find("what techniques save")), HasSubstr(">with --halves yes<"));
}

}  // namespace
}  // namespace thimble
