#include "thimble/report/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class PlanTextTest : public testing::Test {
 protected:
  PlanTextTest() {
    const auto program = MakeTrainingProgram(TinyConfig(), ImageSpec{}, {10, 0, 6}, BuiltinOps());
    answer_.model = "wrn-10-1";
    answer_.batch = 4;
    answer_.record = RecordOf(program->program, BuiltinOps());
    answer_.plain_arena_bytes = 2 * answer_.arena_bytes();
  }
  std::string Text(int64_t budget_bytes = 0) {
    answer_.budget_bytes = budget_bytes;
    return PlanText(answer_);
  }

  PlanAnswer answer_;
};

TEST_F(PlanTextTest, ShowsWhereTheMemoryGoes) {
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("wrn-10-1, batch 4, cpu: 77,850 parameters\n"));
  for (const char* category :
       {"model", "gradients", "optimizer", "activations", "transient", "data", "gaps", "arena"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + category + " ")) << category;
  }
  EXPECT_THAT(text, HasSubstr("\nlargest category: activations, 70.7 % of the arena\n"));
  EXPECT_THAT(text, HasSubstr("allocated, once: 3,223,936 bytes"));
  EXPECT_THAT(text, HasSubstr("no optional technique: 2.00x this arena"));
  EXPECT_THAT(text, HasSubstr("304.38 MFLOP"));
}

TEST_F(PlanTextTest, SaysWhatChangesResults) {
  EXPECT_THAT(Text(), Not(HasSubstr("same-bits: ")));
  answer_.record.plans[0].techniques = {{"order", "same-bits", "", "found one", 0, 0},
                                        {"ghost", "lossy", "", "statistics per 2 samples", 0, 0}};
  EXPECT_THAT(Text(), HasSubstr("\nghost, lossy: statistics per 2 samples\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("found one")));
}

TEST_F(PlanTextTest, NamesTheStepOfThePeak) {
  const PlanRecord& plan = answer_.plan();
  const size_t peak = Account(plan).peak_step;
  EXPECT_THAT(Text(), HasSubstr(fmt::format("the peak is at step {} (of 0 to {}): {} of {}, {}\n",
                                            peak, plan.steps.size() - 1, plan.steps[peak].op,
                                            plan.steps[peak].layer, plan.steps[peak].phase)));
}

TEST_F(PlanTextTest, PyTorchIsNamedOnlyWhereItWasMeasured) {
  EXPECT_THAT(Text(), Not(HasSubstr("PyTorch")));
  answer_.model = "wrn-28-2";
  answer_.batch = 100;
  EXPECT_THAT(Text(), HasSubstr("\nPyTorch"));
}

TEST_F(PlanTextTest, LayersAreShownOnDemand) {
  EXPECT_THAT(Text(), Not(HasSubstr("\nfc ")));
  answer_.with_layers = true;
  EXPECT_THAT(Text(), HasSubstr("\nfc "));
  EXPECT_THAT(Text(), HasSubstr("\nblock3.layer.0.convShortcut "));
}

TEST_F(PlanTextTest, SaysWhatTechniquesSave) {
  Savings savings;
  savings.bare_arena_bytes = 9'000'000;
  savings.always = {{"placement", "same-bits", "", 5'000'000, 100, 7'000'000}};
  savings.asked_arena_bytes = 4'000'000;
  savings.asked_step_flops = 100;
  savings.offered = {{"--less", "lossy: a little", "", 3'000'000, 2'000'100, 4'000'000}};
  savings.together_arena_bytes = 3'000'000;
  answer_.smallest = {{0, "", 2'000'000, 1'000'100}, {10, "", 1'000'000, 100}};
  answer_.plain_arena_bytes = 4'000'000;
  answer_.savings = savings;
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("\nplacement alone  5.00 MB  4.00 MB  +3.00 MB  "
                              "same-bits  same\n"));
  EXPECT_THAT(text, HasSubstr("\nall: plain plan  4.00 MB  5.00 MB\n"));
  EXPECT_THAT(text, HasSubstr("\n--less           3.00 MB  1.00 MB  +1.00 MB  "
                              "lossy      +2.00 MFLOP\n"));
  EXPECT_THAT(text, HasSubstr("\n--less, lossy: a little\n"));
  EXPECT_THAT(text, Not(HasSubstr("all options")));  // there is only one
  EXPECT_THAT(text,
              HasSubstr("\nwhole batch                    2.00 MB      2.00x  +1.00 MFLOP\n"));
  EXPECT_THAT(text, HasSubstr("\nwith --microbatch 10           1.00 MB      4.00x  same\n"));
}

TEST_F(PlanTextTest, SaysWhetherItFits) {
  EXPECT_THAT(Text(), Not(HasSubstr("fit")));
  EXPECT_THAT(Text(1'000'000'000), HasSubstr("\nfits the budget of 1.000 GB\n"));
  EXPECT_THAT(Text(3'000'000),
              HasSubstr("\ndoes not fit: the budget of 3.00 MB is exceeded by 223.94 kB\n"));
  answer_.advice.fitting = {{"--batch 3", 2'000'000, ""}, {"--microbatch 2", 1'000'000, "lossy"}};
  EXPECT_THAT(Text(3'000'000), HasSubstr("exceeded by 223.94 kB\nwould fit: --batch 3: 2.00 MB\n"
                                         "would fit: --microbatch 2: 1.00 MB, lossy\n"));
  answer_.advice = {.fitting = {}, .smallest = Advice{"--batch 1", 3'100'000, ""}};
  EXPECT_THAT(Text(3'000'000),
              HasSubstr("\nnone of the options tried fits; the smallest: --batch 1: 3.10 MB\n"));
}

TEST_F(PlanTextTest, TablesStayWithinTheTerminal) {
  answer_.with_layers = true;
  std::istringstream lines(PlanText(answer_, {60, false}));
  for (std::string line; std::getline(lines, line);) {
    const bool sentence = line.starts_with("the peak is");
    EXPECT_TRUE(sentence || DisplayWidth(line) <= 60) << line;
  }
}

TEST_F(PlanTextTest, ExplainsWhatABudgetChose) {
  BudgetChoice choice;
  choice.levers = {{"--microbatch 5", "lossy: statistics", 0.1, 2'000'000, 0.25},
                   {"--recompute optimal:7", "same-bits", 0, 500'000, -0.001}};
  choice.smallest_bytes = 1'500'000;
  choice.beyond = "--sparsity 0.8";
  answer_.choice = choice;
  const std::string unknown = Text(1'000'000'000);
  EXPECT_THAT(unknown, ContainsRegex("--microbatch 5 +2.00 MB +unknown +-0.10 +lossy: statistics"));
  EXPECT_THAT(unknown, HasSubstr("down to 1.50 MB nothing else has to change; less needs "
                                 "--sparsity 0.8 first\n"));
  EXPECT_THAT(unknown, HasSubstr("thimble calibrate measures this machine, once\n"));
  EXPECT_THAT(unknown, Not(HasSubstr("time of a step")));
  answer_.step_seconds = answer_.choice->step_seconds = 1.5;
  answer_.choice->beyond.clear();
  const std::string known = Text(1'000'000'000);
  EXPECT_THAT(known, ContainsRegex("--microbatch 5 +2.00 MB +.250 ms +-0.10 +lossy: statistics"));
  EXPECT_THAT(known, ContainsRegex("--recompute optimal:7 +500.00 kB +-1 ms +same +same-bits"));
  EXPECT_THAT(known, HasSubstr("nothing else has to change, and less is not possible\n"));
  EXPECT_THAT(known, ContainsRegex("time of a step +1.5 s"));
  EXPECT_THAT(known, Not(HasSubstr("calibrate measures")));
}

}  // namespace
}  // namespace thimble
