#include "thimble/model/wide_resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "tests/support/residual_training.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::vector<std::string> NamesOf(const Graph& graph, Role role) {
  std::vector<std::string> names;
  for (const Value& value : graph.values) {
    if (value.role == role && !value.producer.valid()) names.push_back(value.name);
  }
  return names;
}

Graph Training(std::string_view model, const ImageSpec& images = {}) {
  return MakeNetwork(model, 2, Mode::kTrain, images).graph;
}

const Shape& ShapeOf(const Graph& graph, std::string_view name) {
  return graph.value(graph.Find(name)).shape;
}

TEST(WideResNetTest, HasThePublishedNumbersOfParameters) {
  EXPECT_EQ(CountParameters(Training("wrn-28-2")), 1467610);
  EXPECT_EQ(CountParameters(Training("wrn-16-2")), 691674);
  EXPECT_EQ(CountParameters(MakeNetwork("wrn-28-2", 2, Mode::kEvaluate).graph), 1467610);
}

TEST(WideResNetTest, NamesItsParametersAsTheUsualPyTorchImplementation) {
  EXPECT_THAT(
      NamesOf(Training("wrn-10-1"), Role::kParameter),
      testing::UnorderedElementsAre(
          "conv1.weight",
          // The first block keeps the width and the resolution: no shortcut convolution.
          "block1.layer.0.bn1.weight", "block1.layer.0.bn1.bias", "block1.layer.0.conv1.weight",
          "block1.layer.0.bn2.weight", "block1.layer.0.bn2.bias", "block1.layer.0.conv2.weight",
          "block2.layer.0.bn1.weight", "block2.layer.0.bn1.bias", "block2.layer.0.conv1.weight",
          "block2.layer.0.bn2.weight", "block2.layer.0.bn2.bias", "block2.layer.0.conv2.weight",
          "block2.layer.0.convShortcut.weight",  //
          "block3.layer.0.bn1.weight", "block3.layer.0.bn1.bias", "block3.layer.0.conv1.weight",
          "block3.layer.0.bn2.weight", "block3.layer.0.bn2.bias", "block3.layer.0.conv2.weight",
          "block3.layer.0.convShortcut.weight",  //
          "bn1.weight", "bn1.bias", "fc.weight", "fc.bias"));
}

TEST(WideResNetTest, NamesItsStatisticsToo) {
  std::vector<std::string> expected;
  for (const char* layer :
       {"block1.layer.0.bn1", "block1.layer.0.bn2", "block2.layer.0.bn1", "block2.layer.0.bn2",
        "block3.layer.0.bn1", "block3.layer.0.bn2", "bn1"}) {
    expected.push_back(std::string(layer) + ".running_mean");
    expected.push_back(std::string(layer) + ".running_var");
  }
  EXPECT_THAT(NamesOf(Training("wrn-10-1"), Role::kStatistic),
              testing::UnorderedElementsAreArray(expected));
}

TEST(WideResNetTest, WiderNetworksHaveAShortcutInTheFirstGroup) {
  const Graph graph = Training("wrn-16-2");
  EXPECT_EQ(ShapeOf(graph, "block1.layer.0.convShortcut.weight"), (Shape{32, 1, 1, 16}));
  EXPECT_FALSE(graph.Find("block1.layer.1.convShortcut.weight").valid());
}

TEST(WideResNetTest, GroupsHalveTheResolutionAndDoubleTheWidth) {
  const Graph graph = Training("wrn-16-2");
  EXPECT_EQ(ShapeOf(graph, "conv1.y"), (Shape{2, 32, 32, 16}));
  EXPECT_EQ(ShapeOf(graph, "block1.layer.1.conv2.sum"), (Shape{2, 32, 32, 32}));
  EXPECT_EQ(ShapeOf(graph, "block2.layer.0.conv1.y"), (Shape{2, 16, 16, 64}));
  EXPECT_EQ(ShapeOf(graph, "block3.layer.1.conv2.sum"), (Shape{2, 8, 8, 128}));
  EXPECT_EQ(ShapeOf(graph, "fc.y"), (Shape{2, 10}));
}

TEST(WideResNetTest, ShortcutsStartFromTheNormalisedInputOnlyWhereTheShapeChanges) {
  const Graph graph = Training("wrn-16-2");
  const auto node = [&](std::string_view output) -> const Node& {
    return graph.node(graph.value(graph.Find(output)).producer);
  };
  EXPECT_EQ(node("block2.layer.0.convShortcut.y").inputs[0],
            node("block2.layer.0.conv1.y").inputs[0]);
  EXPECT_EQ(node("block2.layer.1.conv2.sum").inputs[2], graph.Find("block2.layer.0.conv2.sum"));
}

TEST(WideResNetTest, FollowsImagesAndClasses) {
  ImageSpec images;
  images.height = images.width = 64;
  images.classes = 100;
  const Graph graph = Training("wrn-10-1", images);
  EXPECT_EQ(ShapeOf(graph, "block3.layer.0.conv2.sum"), (Shape{2, 16, 16, 64}));
  EXPECT_EQ(ShapeOf(graph, "fc.y"), (Shape{2, 100}));
}

TEST(WideResNetTest, GroupNormReplacesEveryBatchNorm) {
  const Graph plain = Training("wrn-16-2");
  const Graph graph = Training("wrn-16-2:group-norm=8");
  EXPECT_EQ(CountOps(graph, "batch_norm"), 0U);
  EXPECT_EQ(CountOps(graph, "group_norm"), CountOps(plain, "batch_norm"));
  EXPECT_EQ(CountOps(graph, "relu"), 0U);
  EXPECT_EQ(NamesOf(graph, Role::kParameter), NamesOf(plain, Role::kParameter));
  EXPECT_TRUE(NamesOf(graph, Role::kStatistic).empty());
  for (const Node& node : graph.nodes) {
    if (node.op != "group_norm") continue;
    EXPECT_EQ(node.attributes.Int("groups"), graph.value(node.inputs[0]).shape[3] / 8)
        << node.layer;
  }
  EXPECT_EQ(CountOps(MakeNetwork("wrn-16-2:group-norm=8", 2, Mode::kEvaluate).graph, "group_norm"),
            CountOps(graph, "group_norm"));
}

TEST(WideResNetTest, DropsBetweenTheConvolutionsOfEachBlock) {
  const Graph graph = Training("wrn-16-2:dropout=0.3");
  EXPECT_EQ(CountOps(graph, "dropout"), 6U);
  int64_t stream = 0;
  for (const Node& node : graph.nodes) {
    if (node.op != "dropout") continue;
    EXPECT_EQ(node.attributes.Float("rate"), 0.3);
    EXPECT_EQ(node.attributes.Int("stream"), stream++);
    const std::string block = node.layer.substr(0, node.layer.size() - 4);  // without ".bn2"
    EXPECT_EQ(graph.value(node.inputs[0]).name, block + ".bn2.relu");
    const Value& sum = graph.value(graph.Find(block + ".conv2.sum"));
    EXPECT_EQ(graph.node(sum.producer).inputs[0], node.outputs[0]);
  }
}

TEST(WideResNetTest, EvaluationDropsNothing) {
  const Graph plain = MakeNetwork("wrn-10-1", 2, Mode::kEvaluate).graph;
  EXPECT_EQ(MakeNetwork("wrn-10-1:dropout=0.3", 2, Mode::kEvaluate).graph, plain);
}

TEST(WideResNetTest, OptionsComeInAnyOrder) {
  const Graph graph = Training("wrn-10-1:dropout=0.25,group-norm=4");
  EXPECT_EQ(graph, Training("wrn-10-1:group-norm=4,dropout=0.25"));
  EXPECT_GT(CountOps(graph, "dropout"), 0U);
  EXPECT_GT(CountOps(graph, "group_norm"), 0U);
}

TEST(WideResNetTest, RateZeroIsNoDropout) {
  EXPECT_EQ(Training("wrn-10-1:dropout=0"), Training("wrn-10-1"));
}

TEST(WideResNetTest, KeepsItsWholeName) {
  const auto model = MakeWideResNet("wrn-10-1:group-norm=8,dropout=0.3", {});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->name, "wrn-10-1:group-norm=8,dropout=0.3");
}

struct BadName {
  const char* name;
  const char* message;
};

TEST(WideResNetTest, RejectsBadNames) {
  constexpr const char* kForm = "expected wrn-DEPTH-WIDTH";
  constexpr const char* kRate = "expected a rate of at least 0 and below 1";
  constexpr const char* kChannels = "expected a number of channels per group, at least 1";
  for (const auto& [name, message] :
       {BadName{"wrn", kForm},
        {"wrn-", kForm},
        {"wrn-28", kForm},
        {"wrn-28-", kForm},
        {"wrn--2", kForm},
        {"wrn-28-2x", kForm},
        {"wrn-28 -2", kForm},
        {"wrn-28.0-2", kForm},
        {"wrn-28--2", kForm},
        {"wrn-28-2-", kForm},
        {"wrn-28-99999999999", kForm},
        {"wrn-99999999999-2", kForm},
        {"wrn28-2", kForm},
        {"resnet-50", kForm},
        {"", kForm},
        {"wrn-27-2", "depth 27 is impossible"},
        {"wrn-4-1", "depth 4 is impossible"},
        {"wrn--28-2", "depth -28 is impossible"},
        {"wrn-1006-2", "depth 1006 is impossible"},
        {"wrn-28-0", "width 0 must be from 1 to 64"},
        {"wrn-28-65", "width 65 must be"},
        {"wrn-28:dropout=0.3", kForm},
        {"wrn-28-2,dropout=0.3", kForm},
        {"wrn-28-2:", "unknown option ''"},
        {"wrn-28-2:dropuot=0.3", "unknown option 'dropuot'"},
        {"wrn-28-2:dropout=0.3,", "unknown option ''"},
        {"wrn-28-2:dropout=0.3:group-norm=8", "dropout=0.3:group"},
        {"wrn-28-2:dropout=0.3,dropout=0.2", "is given twice"},
        {"wrn-28-2:dropout", kRate},
        {"wrn-28-2:dropout=", kRate},
        {"wrn-28-2:dropout=1", kRate},
        {"wrn-28-2:dropout=-0.1", kRate},
        {"wrn-28-2:dropout=nan", kRate},
        {"wrn-28-2:dropout=30%", kRate},
        {"wrn-28-2:group-norm", kChannels},
        {"wrn-28-2:group-norm=0", kChannels},
        {"wrn-28-2:group-norm=-8", kChannels},
        {"wrn-28-2:group-norm=8.0", kChannels},
        {"wrn-28-2:group-norm=99999999999999999999", kChannels},
        {"wrn-28-2:group-norm=3", "cannot be divided into groups of 3"},
        {"wrn-28-2:group-norm=32", "into groups of 32"}}) {
    const auto model = MakeWideResNet(name, {});
    ASSERT_FALSE(model.ok()) << name;
    EXPECT_EQ(model.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(model.error().message, HasSubstr(std::string("--model ") + name));
    EXPECT_THAT(model.error().message, HasSubstr(message)) << name;
  }
}

TEST(WideResNetTest, RejectsImagesThatCannotBeHalvedTwice) {
  for (int64_t side : {30, 31, 2, 1}) {
    ImageSpec images;
    images.height = images.width = side;
    const auto model = MakeWideResNet("wrn-10-1", images);
    ASSERT_FALSE(model.ok()) << side;
    EXPECT_THAT(model.error().message, HasSubstr("divisible by 4"));
  }
  ImageSpec oblong;
  oblong.width = 64;
  const auto model = MakeWideResNet("wrn-10-1", oblong);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("images are 32x64, expected a square"));
}

TEST(WideResNetTest, BuildsForTheSmallestImages) {
  ImageSpec images;
  images.height = images.width = 4;
  EXPECT_EQ(ShapeOf(Training("wrn-10-1", images), "fc.y"), (Shape{2, 10}));
}

}  // namespace
}  // namespace thimble
