#include "thimble/model/wide_resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"

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

struct BadName {
  const char* name;
  const char* message;
};

TEST(WideResNetTest, RejectsBadNames) {
  constexpr const char* kForm = "expected wrn-DEPTH-WIDTH";
  for (const auto& [name, message] : {BadName{"wrn", kForm},
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
                                      {"wrn-28-65", "width 65 must be"}}) {
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
