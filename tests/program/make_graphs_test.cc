#include "thimble/program/make_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/graph/verify_graph.h"
#include "thimble/model/image_classifier.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::ElementsAre;

class MakeGraphsTest : public testing::Test {
 protected:
  ProgramGraphs Make(const ProgramSpec& spec) {
    auto made = MakeGraphs(
        spec, BuiltinOps(), [&](const BatchShape& shape, bool training) -> Result<Graph> {
          const Mode mode = training ? Mode::kTrain : Mode::kEvaluate;
          THIMBLE_ASSIGN_OR_RETURN(Network network,
                                   BuildNetwork(model_, BuiltinOps(), shape.samples, mode));
          return std::move(network.graph);
        });
    EXPECT_TRUE(made.ok()) << made.error().message;
    for (const NamedGraph& named : made->graphs) {
      EXPECT_TRUE(VerifyGraph(named.graph, BuiltinOps()).ok()) << named.name;
    }
    return std::move(made).value();
  }
  static std::vector<std::string> NamesOf(const ProgramGraphs& made) {
    std::vector<std::string> names;
    for (const NamedGraph& graph : made.graphs) names.push_back(graph.name);
    return names;
  }
  static std::vector<std::string> TechniquesOf(const NamedGraph& graph) {
    std::vector<std::string> names;
    for (const TechniqueRecord& technique : graph.techniques) names.push_back(technique.name);
    return names;
  }

  const ImageClassifier model_ = FindModel("wrn-10-1", ImageSpec{}).value();
};

TEST_F(MakeGraphsTest, AGraphForEveryBatch) {
  const ProgramGraphs made = Make({.train = {{8}, {3}}, .evaluate = {{8}, {5}}});
  EXPECT_THAT(NamesOf(made), ElementsAre("train 8", "train 3", "evaluate 8", "evaluate 5"));
  EXPECT_EQ(made.graphs[0].runs_per_step, 1);
  EXPECT_EQ(made.graphs[1].runs_per_step, 0);
  EXPECT_FALSE(made.split_by.has_value());
  EXPECT_EQ(made.graphs[0].graph.nodes.back().phase, Phase::kUpdate);
}

TEST_F(MakeGraphsTest, PartsAndTheUpdateBehindThem) {
  const ProgramGraphs made = Make(
      {.train = {{7}, {2}}, .evaluate = {{3}}, .techniques = {.values = {{"microbatch", "3"}}}});
  EXPECT_THAT(NamesOf(made), ElementsAre("train 3 of 7", "train 2 of 7", "update 7", "train 2 of 2",
                                         "update 2", "evaluate 3"));
  EXPECT_EQ(made.graphs[0].runs_per_step, 1);
  EXPECT_EQ(made.graphs[1].runs_per_step, 2);
  EXPECT_EQ(made.graphs[3].runs_per_step, 0);
  ASSERT_TRUE(made.split_by.has_value());
  EXPECT_EQ(made.split_by->name, "microbatch");
  EXPECT_EQ(made.split_by->done, "3 parts of at most 3 samples");
  EXPECT_EQ(made.split_by->exactness, "lossy: batch-norm statistics per 3 samples");
}

TEST_F(MakeGraphsTest, EachGraphSaysWhatWasDoneToIt) {
  const ProgramGraphs made =
      Make({.train = {{4}}, .evaluate = {{4}}, .techniques = {.values = {{"bn-group", "2"}}}});
  EXPECT_THAT(TechniquesOf(made.graphs[0]),
              ElementsAre("ghost batch norm", "norm-relu", "conv-add"));
  EXPECT_THAT(TechniquesOf(made.graphs[1]), ElementsAre("norm-relu", "conv-add"));
}

TEST_F(MakeGraphsTest, WhatIsLeftOutIsNotDone) {
  const ProgramGraphs with = Make({.train = {{4}}});
  const ProgramGraphs without = Make({.train = {{4}}, .techniques = {.without = {"conv-add"}}});
  EXPECT_THAT(TechniquesOf(without.graphs[0]), ElementsAre("norm-relu"));
  EXPECT_TRUE(HasOp(with.graphs[0].graph, "conv2d_add"));
  EXPECT_FALSE(HasOp(without.graphs[0].graph, "conv2d_add"));
}

TEST_F(MakeGraphsTest, ErrorsOfTheForwardGraphAreHandedOn) {
  const auto made = MakeGraphs(
      {.train = {{4}}}, BuiltinOps(),
      [](const BatchShape&, bool) -> Result<Graph> { return BadInput("no such network"); });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "no such network");
}

TEST(CutBatch, IsTheWholeUnlessAskedFor) {
  EXPECT_EQ(CutBatch({7}, {}).parts, 1);
  EXPECT_EQ(CutBatch({7}, {.values = {{"microbatch", "3"}}}).parts, 3);
}

}  // namespace
}  // namespace thimble
