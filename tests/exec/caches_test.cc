// What one plan of a group leaves in its caches, the next one of the group finds; the audit counts
// caches and does not paint over them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/cache_graphs.h"
#include "thimble/exec/executor.h"

namespace thimble {
namespace {

using testing::Each;
using testing::IsEmpty;

class CachesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ranges::fill(executor_->ResidentBytes("w"), std::byte{0});
    executor_->StoreResidents();
  }
  std::vector<float> Run(const char* name, float input) {
    const size_t plan = PlanNamed(name);
    executor_->Prepare(plan);
    const TensorView x = executor_->View(plan, "x");
    const std::vector<float> numbers(static_cast<size_t>(x.shape.elements()), input);
    executor_->WriteNow(x, std::as_bytes(std::span(numbers)));
    executor_->Run(plan);
    if (!std::string_view(name).starts_with("use")) return {};
    std::vector<float> result(numbers.size());
    executor_->ReadNow(executor_->View(plan, "y"), std::as_writable_bytes(std::span(result)));
    return result;
  }
  size_t PlanNamed(const char* name) const {
    return static_cast<size_t>(executor_->program().Find(name) - executor_->program().plans.data());
  }

  std::unique_ptr<Executor> executor_ = Executor::Create(PlanGroups(), BuiltinOps()).value();
};

// Runs 1 and 3 of "use A" are audited and not audited; so is the one after "fill" has run again.
TEST_F(CachesTest, LastFromRunToRunWithinAGroup) {
  Run("fill A", 5);
  EXPECT_THAT(Run("use A", 1), Each(6));
  EXPECT_THAT(Run("use A", 2), Each(7));
  Run("fill B", 30);
  EXPECT_THAT(Run("use B", 3), Each(33));
  Run("fill A", 7);
  EXPECT_THAT(Run("use A", 1), Each(8));
  executor_->ScanArena();
  EXPECT_THAT(executor_->audit().faults(), IsEmpty());
}

TEST_F(CachesTest, AreMeasured) {
  for (const char* name : {"fill A", "use A", "fill B", "use B"}) Run(name, 1);
  executor_->ScanArena();
  EXPECT_THAT(executor_->audit().faults(), IsEmpty());
  EXPECT_EQ(executor_->audit().measured_peak_bytes(), executor_->planned_peak_bytes());
}

// A plan that reads a cache nobody has filled would compute with what is there by chance; the audit
// has painted it.
TEST_F(CachesTest, AreLostWhenAnotherGroupRuns) {
  Run("fill A", 5);
  Run("fill B", 30);
  EXPECT_NE(Run("use A", 1)[99], 6);
}

}  // namespace
}  // namespace thimble
