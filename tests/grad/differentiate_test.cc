#include "thimble/grad/differentiate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_interpreter.h"
#include "tests/support/toy_ops.h"
#include "thimble/graph/verify_graph.h"

namespace thimble {
namespace {

using testing::HasSubstr;

struct TwiceReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = T(2) * call.In(0)[i];
    }
  }
};

class DifferentiateTest : public testing::Test {
 protected:
  ValueId Op(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    return AppendToy(graph_, ops_, op, std::move(inputs), std::move(attributes));
  }
  // Gradients with respect to `wrt` at x = 3, w = 5, given d`of` = 1.
  std::vector<double> GradientsOf(ValueId of, const std::vector<ValueId>& wrt) {
    const auto gradients = Differentiate(graph_, ops_, {{of, seed_}}, wrt);
    if (!gradients.ok()) {
      ADD_FAILURE() << gradients.error().message;
      return {};
    }
    const auto verified = VerifyGraph(graph_, ops_);
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    std::vector<ReferenceTensor<double>> values(graph_.values.size());
    values[x_.index()].numbers = {3};
    values[w_.index()].numbers = {5};
    values[seed_.index()].numbers = {1};
    RunReferenceGraph(graph_, ops_, values);
    std::vector<double> result;
    for (ValueId gradient : *gradients) result.push_back(values[gradient.index()].numbers[0]);
    last_ = *gradients;
    return result;
  }
  std::string ErrorOf(ValueId of, const std::vector<ValueId>& wrt) {
    const auto gradients = Differentiate(graph_, ops_, {{of, seed_}}, wrt);
    EXPECT_FALSE(gradients.ok());
    return gradients.ok() ? "" : gradients.error().message;
  }

  OpRegistry ops_ = ToyOps();
  Graph graph_;
  ValueId x_ = AddInput(graph_, "x", {1});
  ValueId w_ = AddInput(graph_, "w", {1}, Role::kParameter);
  ValueId seed_ = AddInput(graph_, "seed", {1});
  std::vector<ValueId> last_;
};

TEST_F(DifferentiateTest, FollowsAChain) {
  const ValueId y = Op("scale", {Op("scale", {x_}, {{"factor", 3.0}})}, {{"factor", 7.0}});
  EXPECT_EQ(GradientsOf(y, {x_}), std::vector<double>{21});
}

TEST_F(DifferentiateTest, GivesOneGradientPerEntryInOrder) {
  const ValueId y = Op("multiply", {x_, w_});
  EXPECT_EQ(GradientsOf(y, {w_, x_}), (std::vector<double>{3, 5}));
}

TEST_F(DifferentiateTest, SumsOverAllUses) {
  // y = (2x) * w + 2x = 2x(w + 1).
  const ValueId twice = Op("scale", {x_});
  const ValueId y = Op("add", {Op("multiply", {twice, w_}), twice});
  EXPECT_EQ(GradientsOf(y, {x_, w_}), (std::vector<double>{12, 6}));
}

TEST_F(DifferentiateTest, OneValueAtBothInputs) {
  const ValueId square = Op("multiply", {x_, x_});
  EXPECT_EQ(GradientsOf(square, {x_}), std::vector<double>{6});
}

TEST_F(DifferentiateTest, OneValueAtBothInputsOfASum) {
  // Both parts are the seed itself; they must be added without changing the seed.
  EXPECT_EQ(GradientsOf(Op("add", {x_, x_}), {x_}), std::vector<double>{2});
}

TEST_F(DifferentiateTest, SharedGradientIsNotChangedByLaterParts) {
  // a and b of the sum share one gradient; b gets a second part, a must not.
  const ValueId a = Op("scale", {x_}, {{"factor", 10.0}});
  const ValueId b = Op("scale", {w_}, {{"factor", 100.0}});
  const ValueId y = Op("add", {Op("add", {a, b}), Op("scale", {b})});
  EXPECT_EQ(GradientsOf(y, {x_, w_}), (std::vector<double>{10, 300}));
}

TEST_F(DifferentiateTest, ARuleMayAddToTheSumItself) {
  // twice: y = 2x; its rule uses the sum so far of x's gradient and adds with its own kind of node.
  int num_found = 0;
  OpDef twice("twice");
  twice.Input("x").Output("y").ShapeRule(SameAs(0)).Gradient([&](GradientBuilder& g) {
    const ValueId part = g.Emit("scale", {g.GradOf("y")}, {{"factor", 2.0}})[0];
    if (!g.SumSoFar("x").valid()) return g.AddTo("x", part);
    ++num_found;
    g.Replace("x", g.Emit("add", {part, g.SumSoFar("x")})[0]);
  });
  twice.Reference<TwiceReference>();
  ops_.Add(twice);
  // y = 2x + 10x, processed backwards: the rule of `twice` comes second.
  const ValueId first = Op("twice", {x_});
  const ValueId y = Op("add", {first, Op("scale", {x_}, {{"factor", 10.0}})});
  EXPECT_EQ(GradientsOf(y, {x_}), std::vector<double>{12});
  EXPECT_EQ(num_found, 1);
  EXPECT_EQ(graph_.value(last_.front()).name, "dx.2");
  EXPECT_EQ(graph_.value(last_.front()).gradient_of, x_);
}

TEST_F(DifferentiateTest, GradientOfTheSeededValueIsTheSeed) {
  const ValueId y = Op("scale", {x_});
  GradientsOf(y, {y});
  EXPECT_EQ(last_.front(), seed_);
}

TEST_F(DifferentiateTest, SeveralSeedsAddUp) {
  const ValueId y = Op("scale", {x_});
  const ValueId z = Op("scale", {x_}, {{"factor", 5.0}});
  const auto gradients = Differentiate(graph_, ops_, {{y, seed_}, {z, seed_}}, {x_});
  ASSERT_TRUE(gradients.ok());
  std::vector<ReferenceTensor<double>> values(graph_.values.size());
  values[x_.index()].numbers = {3};
  values[seed_.index()].numbers = {1};
  values[w_.index()].numbers = {0};
  RunReferenceGraph(graph_, ops_, values);
  EXPECT_EQ(values[gradients->front().index()].numbers[0], 7);
}

TEST_F(DifferentiateTest, NamesAndMarksGradients) {
  GradientsOf(Op("multiply", {x_, w_}), {w_});
  const Value& gradient = graph_.value(last_.front());
  EXPECT_EQ(gradient.name, "dw");
  EXPECT_EQ(gradient.role, Role::kGradient);
  EXPECT_EQ(gradient.gradient_of, w_);
  EXPECT_EQ(graph_.node(gradient.producer).phase, Phase::kBackward);
}

TEST_F(DifferentiateTest, EmitsNothingThatNobodyWants) {
  const ValueId y = Op("multiply", {Op("scale", {x_}), w_});
  GradientsOf(y, {w_});
  // Two forward nodes, one for dw; none for x's side.
  EXPECT_EQ(graph_.nodes.size(), 3U);
}

TEST_F(DifferentiateTest, OpWithoutGradientMayStandAside) {
  const ValueId y = Op("multiply", {Op("blocked", {x_}), w_});
  const auto gradients = Differentiate(graph_, ops_, {{y, seed_}}, {w_});
  EXPECT_TRUE(gradients.ok());
}

TEST_F(DifferentiateTest, RejectsPathThroughOpWithoutGradient) {
  const ValueId y = Op("scale", {Op("blocked", {x_})});
  EXPECT_THAT(ErrorOf(y, {x_}), HasSubstr("op 'blocked' has no gradient: it is a wall"));
}

TEST_F(DifferentiateTest, RejectsValueWithoutInfluence) {
  const ValueId y = Op("scale", {x_});
  EXPECT_THAT(ErrorOf(y, {x_, w_}), HasSubstr("'w' has no influence on the loss"));
}

TEST_F(DifferentiateTest, RejectsValueThatComesAfterTheSeed) {
  const ValueId y = Op("scale", {x_});
  const ValueId z = Op("scale", {y});
  EXPECT_THAT(ErrorOf(y, {z}), HasSubstr("has no influence"));
}

}  // namespace
}  // namespace thimble
