#include "thimble/graph/verify_packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// Two weights of 300 and 20 elements in one pool of 40 numbers. The first is read and updated.
class VerifyPackedTest : public testing::Test {
 protected:
  VerifyPackedTest() {
    Get(pattern_).dtype = DType::kI32;
    Get(first_).packed = {.pool = pool_, .pattern = pattern_, .first_block = 0, .tensor = 0};
    Get(second_).packed = {.pool = pool_, .pattern = pattern_, .first_block = 2, .tensor = 1};
    next_ = AppendToy(graph_, ops_, "scale", {first_});
    Get(next_).role = Role::kParameter;
    Get(next_).packed = Get(first_).packed;
    graph_.carries = {{first_, next_}};
  }
  Value& Get(ValueId id) { return graph_.values[id.index()]; }
  std::string ErrorOfGraph() const {
    const auto verified = VerifyPacked(graph_);
    EXPECT_FALSE(verified.ok());
    return verified.ok() ? "" : verified.error().message;
  }

  OpRegistry ops_ = ToyOps();
  Graph graph_;
  ValueId pool_ = AddInput(graph_, "pool", {40}, Role::kParameter);
  ValueId pattern_ = AddInput(graph_, "pattern", {PatternWords(3)}, Role::kStatistic);
  ValueId first_ = AddInput(graph_, "first", {3, 100}, Role::kParameter);
  ValueId second_ = AddInput(graph_, "second", {20}, Role::kParameter);
  ValueId next_;
};

TEST_F(VerifyPackedTest, AcceptsGoodGraph) {
  const auto verified = VerifyPacked(graph_);
  EXPECT_TRUE(verified.ok()) << verified.error().message;
}

TEST_F(VerifyPackedTest, FindsAPoolThatIsComputed) {
  Get(first_).packed.pool = next_;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'first': its pool and its pattern must be dense"));
}

TEST_F(VerifyPackedTest, FindsAMissingPattern) {
  Get(second_).packed.pattern = {};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'second': its pool and its pattern must be dense"));
}

TEST_F(VerifyPackedTest, FindsAPoolOfAnotherType) {
  Get(pool_).dtype = DType::kF16;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'first': is f32, its pool 'pool' is (40) f16"));
}

TEST_F(VerifyPackedTest, FindsAPatternThatIsTooSmall) {
  Get(second_).packed.first_block = 3;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'second': needs blocks 3 to 4 of its pattern"));
}

TEST_F(VerifyPackedTest, FindsTwoValuesInOnePlace) {
  Get(second_).packed = Get(first_).packed;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'second': has the place of 'first' in pool 'pool'"));
}

TEST_F(VerifyPackedTest, FindsAVersionAtAnotherPlace) {
  Get(next_).packed.tensor = 5;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'scale.y': is the next version of 'first'"));
}

TEST_F(VerifyPackedTest, FindsAnAccessToAWholePool) {
  AppendToy(graph_, ops_, "scale", {pool_});
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("accesses pool 'pool' as a whole"));
}

}  // namespace
}  // namespace thimble
