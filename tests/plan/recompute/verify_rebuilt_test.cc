#include "thimble/plan/recompute/verify_rebuilt.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/recompute/toy_chain.h"
#include "thimble/plan/recompute/apply_schedule.h"

namespace thimble {
namespace {

class VerifyRebuiltTest : public ::testing::Test {
 protected:
  VerifyRebuiltTest() {
    std::vector<bool> kept(toy_.chain.values.size(), true);
    kept[toy_.b.index()] = kept[toy_.c.index()] = false;
    rebuilt_ =
        ApplySchedule(toy_.draft, toy_.chain, ScheduleKeeping(toy_.graph(), toy_.chain, kept))
            .graph;
  }
  Result<void> Verify() const {
    return VerifyRebuilt(toy_.graph(), rebuilt_, toy::RandomGraphOps());
  }
  Node& Maker(const char* value) {
    return rebuilt_.nodes[rebuilt_.value(rebuilt_.Find(value)).producer.index()];
  }
  void ExpectWrong(const std::string& part) const {
    const auto verified = Verify();
    ASSERT_FALSE(verified.ok());
    EXPECT_NE(verified.error().message.find(part), std::string::npos) << verified.error().message;
  }

  toy::ToyChain toy_;
  Graph rebuilt_;
};

TEST_F(VerifyRebuiltTest, AcceptsWhatIsRight) { EXPECT_TRUE(Verify().ok()); }

TEST_F(VerifyRebuiltTest, SeesAnotherOp) {
  Maker("b.again").op = "blur";
  ExpectWrong("no value is rebuilt by 'b.again'");
}

TEST_F(VerifyRebuiltTest, SeesAnotherInput) {
  Maker("b.again").inputs = {rebuilt_.Find("x")};  // makes another a
  ExpectWrong("no value is rebuilt by 'c.again'");
}

TEST_F(VerifyRebuiltTest, SeesSwappedInputs) {
  std::swap(Maker("c.again").inputs[0], Maker("c.again").inputs[1]);
  ExpectWrong("c.again");
}

TEST_F(VerifyRebuiltTest, SeesAReaderOfTheWrongValue) {
  Maker("db").inputs[1] = rebuilt_.Find("c.again");
  ExpectWrong("'db' is made by a different node");
}

TEST_F(VerifyRebuiltTest, SeesAnotherPhase) {
  Maker("b.again").phase = Phase::kForward;
  ExpectWrong("outside backward");
}

TEST_F(VerifyRebuiltTest, SeesAnotherRole) {
  rebuilt_.values[rebuilt_.Find("b.again").index()].role = Role::kGradient;
  ExpectWrong("does not match 'b'");
}

TEST_F(VerifyRebuiltTest, SeesMissingNodes) {
  rebuilt_.nodes.erase(rebuilt_.nodes.begin() + 3);
  ExpectWrong("nodes exist");
}

TEST_F(VerifyRebuiltTest, SeesOtherOutputs) {
  rebuilt_.outputs = {toy_.a};
  ExpectWrong("outputs or carries");
}

// A norm may be rebuilt only from its own statistics.
TEST(VerifyRebuilt, KnowsTheRulesOfOps) {
  std::mt19937 random(3);
  const PlanDraft draft = toy::MakeDraft(toy::RandomNetwork(random, 6).Take(true), BuiltinOps());
  const Chain chain = MakeChain(draft, BuiltinOps(), {}).value();
  const RebuildSchedule schedule =
      ScheduleKeeping(draft.graph, chain, std::vector<bool>(chain.values.size(), false));
  Graph rebuilt = ApplySchedule(draft, chain, schedule).graph;
  EXPECT_TRUE(VerifyRebuilt(draft.graph, rebuilt, BuiltinOps()).ok());
  int norms = 0;
  for (Node& node : rebuilt.nodes) {
    if (node.op != "batch_norm_eval") continue;
    ++norms;
    std::swap(node.inputs[3], node.inputs[4]);
    EXPECT_FALSE(VerifyRebuilt(draft.graph, rebuilt, BuiltinOps()).ok());
    std::swap(node.inputs[3], node.inputs[4]);
    node.attributes.Set("relu", int64_t{1} - node.attributes.Int("relu"));
    EXPECT_FALSE(VerifyRebuilt(draft.graph, rebuilt, BuiltinOps()).ok());
    node.attributes.Set("relu", int64_t{1} - node.attributes.Int("relu"));
  }
  EXPECT_GT(norms, 0);
}

}  // namespace
}  // namespace thimble
