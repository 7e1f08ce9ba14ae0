#include "thimble/graph/verify_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/toy_ops.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// A valid graph (x, weight -> product -> scaled; weight is carried), which each test breaks in one
// way.
class VerifyGraphTest : public testing::Test {
 protected:
  VerifyGraphTest() {
    product_ = AppendToy(graph_, ops_, "multiply", {x_, weight_});
    scaled_ = AppendToy(graph_, ops_, "scale", {product_});
    next_weight_ = AppendToy(graph_, ops_, "scale", {weight_});
    Get(next_weight_).role = Role::kParameter;
    graph_.carries = {{weight_, next_weight_}};
    graph_.outputs = {scaled_};
  }
  Value& Get(ValueId id) { return graph_.values[id.index()]; }
  std::string ErrorOfGraph() const {
    const auto verified = VerifyGraph(graph_, ops_);
    EXPECT_FALSE(verified.ok());
    return verified.ok() ? "" : verified.error().message;
  }

  OpRegistry ops_ = ToyOps();
  Graph graph_;
  ValueId x_ = AddInput(graph_, "x", {2, 3});
  ValueId weight_ = AddInput(graph_, "weight", {2, 3}, Role::kParameter);
  ValueId product_;
  ValueId scaled_;
  ValueId next_weight_;
};

TEST_F(VerifyGraphTest, AcceptsGoodGraph) {
  const auto verified = VerifyGraph(graph_, ops_);
  EXPECT_TRUE(verified.ok()) << verified.error().message;
}

TEST_F(VerifyGraphTest, AcceptsEmptyGraph) { EXPECT_TRUE(VerifyGraph(Graph(), ops_).ok()); }

TEST_F(VerifyGraphTest, FindsTwoValuesOfOneName) {
  Get(product_).name = "x";
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("two values are named 'x'"));
}

TEST_F(VerifyGraphTest, FindsUnknownOp) {
  graph_.nodes[0].op = "twirl";
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("unknown op 'twirl'"));
}

TEST_F(VerifyGraphTest, FindsWrongNumberOfPorts) {
  graph_.nodes[0].inputs.pop_back();
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("wrong number of inputs or outputs"));
}

TEST_F(VerifyGraphTest, FindsMissingAttribute) {
  graph_.nodes[1].attributes = {};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("expected 'factor=2'"));
}

TEST_F(VerifyGraphTest, FindsAttributeOfWrongType) {
  graph_.nodes[1].attributes = {{"factor", int64_t{2}}};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr(", expected '"));
}

TEST_F(VerifyGraphTest, FindsExtraAttribute) {
  graph_.nodes[0].attributes = {{"factor", 2.0}};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr(", expected '"));
}

TEST_F(VerifyGraphTest, FindsReadingBeforeWriting) {
  std::swap(graph_.nodes[0], graph_.nodes[1]);
  Get(product_).producer = NodeId(1);
  Get(scaled_).producer = NodeId(0);
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("reads 'multiply.y' before it is written"));
}

TEST_F(VerifyGraphTest, FindsReadingOwnOutput) {
  graph_.nodes[1].inputs = {scaled_};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("before it is written"));
}

TEST_F(VerifyGraphTest, FindsIdsOfNothing) {
  graph_.nodes[0].inputs[0] = ValueId();
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("refers to no value"));
  graph_.nodes[0].inputs[0] = ValueId(99);
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("refers to no value"));
}

TEST_F(VerifyGraphTest, FindsOutputIdsOfNothing) {
  graph_.nodes[0].outputs[0] = ValueId(99);
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("refers to no value"));
}

TEST_F(VerifyGraphTest, FindsGraphOutputOfNothing) {
  graph_.outputs.push_back(ValueId(99));
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("output refers to no value"));
}

TEST_F(VerifyGraphTest, FindsWrongInputType) {
  Get(x_).dtype = DType::kI32;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'x' has the wrong type"));
}

TEST_F(VerifyGraphTest, FindsWrongOutputType) {
  Get(scaled_).dtype = DType::kU8;
  EXPECT_FALSE(ErrorOfGraph().empty());
}

TEST_F(VerifyGraphTest, FindsWrongOutputShape) {
  Get(scaled_).shape = Shape{3, 2};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'scale.y' has shape (3, 2), expected (2, 3)"));
}

TEST_F(VerifyGraphTest, FindsShapesThatDoNotGoTogether) {
  Get(x_).shape = Shape{5};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("shapes differ"));
}

TEST_F(VerifyGraphTest, FindsOverflowingSizes) {
  AddInput(graph_, "huge", {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'huge' of shape"));
}

TEST_F(VerifyGraphTest, FindsValueWrittenTwice) {
  graph_.nodes[1].outputs = {product_};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("written twice"));
}

TEST_F(VerifyGraphTest, FindsWrongProducer) {
  Get(product_).producer = NodeId(1);
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("not by its producer"));
}

TEST_F(VerifyGraphTest, FindsValueThatIsNeverWritten) {
  graph_.AddValue({"ghost", Shape{1}, DType::kF32, Role::kActivation, NodeId(0), {}});
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'ghost' is never written"));
}

TEST_F(VerifyGraphTest, FindsActivationWithoutProducer) {
  AddInput(graph_, "orphan", {1}, Role::kActivation);
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("'orphan' (activation) must be computed by a node"));
}

TEST_F(VerifyGraphTest, FindsParameterThatIsProducedWithoutCarry) {
  graph_.carries.clear();
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("(parameter) must not be computed by a node"));
}

TEST_F(VerifyGraphTest, FindsInputWithProducer) {
  Get(scaled_).role = Role::kInput;
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("(input) must not be computed by a node"));
}

TEST_F(VerifyGraphTest, FindsCarryBetweenUnlikeValues) {
  graph_.carries = {{weight_, scaled_}};  // an activation
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("expected a persistent value and a computed one"));
  graph_.carries = {{x_, next_weight_}};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("expected a persistent value and a computed one"));
}

TEST_F(VerifyGraphTest, FindsCarryToItself) {
  graph_.carries.push_back({weight_, weight_});
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("expected a persistent value and a computed one"));
}

TEST_F(VerifyGraphTest, FindsValueCarriedTwice) {
  graph_.carries.push_back({weight_, next_weight_});
  EXPECT_THAT(ErrorOfGraph(),
              HasSubstr("'weight' has two next versions, 'scale.y.2' and 'scale.y.2'"));
}

TEST_F(VerifyGraphTest, FindsCarryOfNothing) {
  graph_.carries = {{ValueId(), next_weight_}};
  EXPECT_THAT(ErrorOfGraph(), HasSubstr("carry refers to no value"));
}

// State that changes three times: v0 -> v1 -> v2 -> v3, and a reader of each version but the last.
class VersionsTest : public testing::Test {
 protected:
  VersionsTest() {
    versions_ = {AddInput(graph_, "pool", {4}, Role::kParameter)};
    for (int i = 0; i < 3; ++i) {
      readers_.push_back(AppendToy(graph_, ops_, "scale", {versions_.back()}));
      const auto appended = AppendCarryingNode(
          graph_, ops_, {.op = "scale", .inputs = {versions_.back()}, .phase = Phase::kForward},
          {versions_.back()});
      EXPECT_TRUE(appended.ok());
      versions_.push_back(graph_.carries.back().to);
    }
  }
  void ExpectWrong(const std::string& message) const {
    const auto verified = VerifyGraph(graph_, ops_);
    ASSERT_FALSE(verified.ok());
    EXPECT_THAT(verified.error().message, HasSubstr(message));
  }
  Value& Get(ValueId id) { return graph_.values[id.index()]; }

  OpRegistry ops_ = ToyOps();
  Graph graph_;
  std::vector<ValueId> versions_;
  std::vector<ValueId> readers_;
};

TEST_F(VersionsTest, ChainsAreFine) {
  const auto verified = VerifyGraph(graph_, ops_);
  EXPECT_TRUE(verified.ok()) << verified.error().message;
  std::reverse(graph_.carries.begin(), graph_.carries.end());
  EXPECT_TRUE(VerifyGraph(graph_, ops_).ok());
}

TEST_F(VersionsTest, FindsBranches) {
  graph_.carries[2].from = versions_[1];
  ExpectWrong("'pool.next' has two next versions, 'pool.next.2' and 'pool.next.3'");
}

TEST_F(VersionsTest, FindsValueWithTwoPredecessors) {
  const ValueId other = AddInput(graph_, "other", {4}, Role::kParameter);
  graph_.carries.push_back({other, versions_[3]});
  ExpectWrong("'pool.next.3' is the next version of two values");
}

TEST_F(VersionsTest, FindsCycle) {
  graph_.carries[0].from = versions_[3];
  ExpectWrong("is not in a chain that begins at a value without a producer");
}

TEST_F(VersionsTest, FindsChainThatBeginsAtAComputedValue) {
  graph_.carries.erase(graph_.carries.begin());
  ExpectWrong(
      "carry 'pool.next' -> 'pool.next.2' is not in a chain that begins at a value without");
}

TEST_F(VersionsTest, FindsUnlikeVersions) {
  Get(versions_[2]).role = Role::kState;
  ExpectWrong("carry 'pool.next' -> 'pool.next.2': expected a persistent value and a computed one");
}

TEST_F(VersionsTest, FindsReaderOfAnOverwrittenVersion) {
  AppendToy(graph_, ops_, "scale", {versions_[1]});
  ExpectWrong("node 6 (scale) reads 'pool.next' after 'pool.next.2' was written over it");
}

TEST_F(VersionsTest, NodesOfALaterPhaseCountAsLater) {
  // The reader is listed before the node that makes the next version, but runs after it.
  graph_.nodes[2].phase = Phase::kBackward;
  ExpectWrong("node 2 (scale) reads 'pool.next' after 'pool.next.2' was written over it");
  // The nodes that overwrite later versions also come later.
  for (size_t node = 3; node < 6; ++node) graph_.nodes[node].phase = Phase::kBackward;
  EXPECT_TRUE(VerifyGraph(graph_, ops_).ok());
}

TEST_F(VersionsTest, FindsVersionsThatAreWrittenInTheWrongOrder) {
  // Both are computed from x alone: only the carry says which one comes first.
  Graph graph;
  const ValueId x = AddInput(graph, "x", {4});
  const ValueId pool = AddInput(graph, "pool", {4}, Role::kParameter);
  const ValueId first = AppendToy(graph, ops_, "scale", {x});
  const ValueId second = AppendToy(graph, ops_, "scale", {x});
  for (ValueId version : {first, second}) {
    graph.values[version.index()].role = Role::kParameter;
  }
  graph.carries = {{pool, first}, {first, second}};
  EXPECT_TRUE(VerifyGraph(graph, ops_).ok());
  graph.carries = {{pool, second}, {second, first}};
  graph_ = graph;
  ExpectWrong("node 1 (scale) writes 'scale.y.2' after 'scale.y' was written over it");
}

}  // namespace
}  // namespace thimble
