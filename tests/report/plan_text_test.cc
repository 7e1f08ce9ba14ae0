#include "thimble/report/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Text(int64_t budget_bytes) {
  const auto program = MakeTrainingProgram(TinyConfig(), ImageSpec{}, {10, 0, 6}, BuiltinOps());
  return PlanText({"wrn-10-1", 4, budget_bytes, 0, RecordOf(program->program, BuiltinOps())});
}

TEST(PlanText, ShowsWhereTheMemoryGoes) {
  const std::string text = Text(0);
  EXPECT_THAT(text, HasSubstr("wrn-10-1, batch 4, cpu: 77850 parameters\n"));
  for (const char* category :
       {"model", "gradients", "optimizer", "activations", "transient", "data", "gaps", "arena"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + category + " ")) << category;
  }
  EXPECT_THAT(text, HasSubstr("GFLOP forward"));
  EXPECT_THAT(text, HasSubstr(" bytes), at least "));
}

TEST(PlanText, SaysThatItFitsOnlyWhereItDoes) {
  EXPECT_THAT(Text(0), Not(HasSubstr("fits")));
  EXPECT_THAT(Text(1'000'000'000), HasSubstr("fits the budget of 1.000 GB\n"));
  EXPECT_THAT(Text(1000), Not(HasSubstr("fits")));
}

}  // namespace
}  // namespace thimble
