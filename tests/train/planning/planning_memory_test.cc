#include "thimble/train/planning/planning_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/image_programs.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ImageClassifier PlannedModel(const std::string& name) {
  return FindModel(name, ImageSpec{}).value();
}

int64_t PlanningBytesFor(const std::string& name) {
  return PlanningBytes(*TaskOf(PlannedModel(name), {}), BuiltinOps());
}

// What thimble plan --recompute optimal was seen to add to the process.
TEST(PlanningMemory, CoversWhatWasMeasured) {
  EXPECT_GT(PlanningBytesFor("wrn-10-1"), 900'000);
  EXPECT_GT(PlanningBytesFor("wrn-28-2"), 5'700'000);
  EXPECT_GT(PlanningBytesFor("wrn-40-2"), 9'900'000);
  EXPECT_GT(PlanningBytesFor("wrn-100-1"), 18'000'000);
  EXPECT_LT(PlanningBytesFor("wrn-28-2"), 8'000'000);
}

TEST(PlanningMemory, OfANetworkThatCannotBeBuilt) {
  ImageClassifier model = PlannedModel("wrn-10-1");
  model.body = [](NetworkBuilder&, ValueId images) { return images; };
  EXPECT_EQ(PlanningBytes(*TaskOf(model, {}), BuiltinOps()), 0);
  EXPECT_TRUE(CheckPlanningMemory(*TaskOf(model, {}), BuiltinOps(), ReadMemoryLimits()).ok());
}

TEST(PlanningMemory, TooLittleIsRefusedWithTheLimit) {
  const ImageClassifier model = PlannedModel("wrn-28-2");
  MemoryLimits limits = {{{"the control group /a", "limit 6.00 MB, 2.00 MB in use", 4'000'000}}, 0};
  const auto refused = CheckPlanningMemory(*TaskOf(model, {}), BuiltinOps(), limits);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("not enough memory: planning needs"),
                    HasSubstr("the control group /a allows only 4.00 MB more (limit 6.00 MB"),
                    HasSubstr("smaller model"), Not(HasSubstr("--budget"))));
  limits.limits[0].free_bytes = 12'000'000;
  EXPECT_TRUE(CheckPlanningMemory(*TaskOf(model, {}), BuiltinOps(), limits).ok());
  EXPECT_TRUE(CheckPlanningMemory(*TaskOf(model, {}), BuiltinOps(), {}).ok());
}

}  // namespace
}  // namespace thimble
