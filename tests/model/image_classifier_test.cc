#include "thimble/model/image_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/test_paths.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/model/translator.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

ImageClassifier Flat() {
  return {"flat", ImageSpec{}, [](NetworkBuilder& net, ValueId x) {
            return net.Linear("fc", net.GlobalAveragePool(x), 10);
          }};
}

std::string ErrorOf(const ImageClassifier& model, int64_t batch) {
  const auto network = BuildNetwork(model, BuiltinOps(), batch, Mode::kTrain);
  EXPECT_FALSE(network.ok());
  if (network.ok()) return "";
  EXPECT_EQ(network.error().kind, ErrorKind::kBadInput);
  return network.error().message;
}

TEST(ImageClassifierTest, BuildsTheForwardGraph) {
  for (Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    const auto network = BuildNetwork(Flat(), BuiltinOps(), 7, mode);
    ASSERT_TRUE(network.ok());
    const Graph& graph = network->graph;
    EXPECT_TRUE(VerifyGraph(graph, BuiltinOps()).ok());
    const Value& images = graph.value(graph.Find(kImagesInput));
    EXPECT_EQ(images.shape, (Shape{7, 32, 32, 3}));
    EXPECT_EQ(images.dtype, DType::kU8);
    EXPECT_EQ(images.role, Role::kInput);
    EXPECT_EQ(graph.value(graph.Find(kLabelsInput)).shape, (Shape{7}));
    EXPECT_EQ(network->loss, graph.Find(kLossOutput));
    EXPECT_EQ(graph.outputs,
              (std::vector<ValueId>{graph.Find(kLossOutput), graph.Find(kCorrectOutput)}));
    EXPECT_EQ(network->inits.size(), 2U);
  }
}

TEST(ImageClassifierTest, TheLossIsTheMeanOverTheBatch) {
  const auto network = BuildNetwork(Flat(), BuiltinOps(), 7, Mode::kTrain);
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->graph.nodes.back().attributes.Float("divisor"), 7);
}

TEST(ImageClassifierTest, TrainingImagesAreDrawnBeforeTheyAreNormalised) {
  const ImageDraws draws{Augmentation::kCropFlip, 7};
  const auto network = BuildNetwork(Flat(), BuiltinOps(), 3, Mode::kTrain, draws);
  ASSERT_TRUE(network.ok()) << network.error().message;
  const Graph& graph = network->graph;
  EXPECT_TRUE(VerifyGraph(graph, BuiltinOps()).ok());
  const Node& crop = graph.nodes.front();
  EXPECT_EQ(crop.op, "image_crop_flip");
  EXPECT_EQ(crop.attributes.Int("seed"), 7);
  EXPECT_EQ(crop.inputs, (std::vector<ValueId>{graph.Find(kImagesInput), graph.Find(kSamplesInput),
                                               graph.Find(kEpochInput)}));
  EXPECT_EQ(graph.value(graph.Find(kSamplesInput)).shape, Shape{3});
  EXPECT_EQ(graph.value(graph.Find(kEpochInput)).shape, Shape{1});
  EXPECT_EQ(graph.nodes[1].op, "image_normalize");
  EXPECT_EQ(graph.nodes[1].inputs, crop.outputs);
}

TEST(ImageClassifierTest, DropoutSharesInputsAndSeedWithTheImages) {
  ImageClassifier model = Flat();
  model.body = [body = model.body](NetworkBuilder& net, ValueId x) {
    return body(net, net.Dropout(x, 0.5));
  };
  const auto network =
      BuildNetwork(model, BuiltinOps(), 3, Mode::kTrain, {Augmentation::kCropFlip, 7});
  ASSERT_TRUE(network.ok()) << network.error().message;
  const Graph& graph = network->graph;
  EXPECT_TRUE(VerifyGraph(graph, BuiltinOps()).ok());
  ASSERT_EQ(graph.nodes[2].op, "dropout");
  EXPECT_EQ(graph.nodes[2].attributes.Int("seed"), 7);
  EXPECT_EQ(graph.nodes[2].inputs[1], graph.nodes[0].inputs[1]);
  EXPECT_EQ(graph.nodes[2].inputs[2], graph.nodes[0].inputs[2]);
}

TEST(ImageClassifierTest, EvaluationShowsImagesAsTheyAre) {
  const ImageDraws draws{Augmentation::kCropFlip, 7};
  const auto network = BuildNetwork(Flat(), BuiltinOps(), 3, Mode::kEvaluate, draws);
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->graph.nodes.front().op, "image_normalize");
  EXPECT_FALSE(network->graph.Find(kSamplesInput).valid());
}

TEST(ImageClassifierTest, RejectsImagesTooSmallToBeDrawn) {
  ImageClassifier model = Flat();
  model.images.height = model.images.width = 4;
  const auto network =
      BuildNetwork(model, BuiltinOps(), 3, Mode::kTrain, {Augmentation::kCropFlip, 7});
  ASSERT_FALSE(network.ok());
  EXPECT_THAT(network.error().message, HasSubstr("an image of 4 by 4 is too small"));
}

TEST(ImageClassifierTest, RejectsImpossibleBatches) {
  EXPECT_THAT(ErrorOf(Flat(), 0), HasSubstr("--batch 0: must be at least 1"));
  EXPECT_THAT(ErrorOf(Flat(), -5), HasSubstr("--batch -5"));
  EXPECT_THAT(ErrorOf(Flat(), INT64_MAX), HasSubstr("at most 1048576"));
  EXPECT_TRUE(BuildNetwork(Flat(), BuiltinOps(), 1 << 20, Mode::kTrain).ok());
}

TEST(ImageClassifierTest, RejectsImpossibleImages) {
  const std::vector<std::function<void(ImageSpec&)>> faults = {
      [](ImageSpec& images) { images.height = 0; },
      [](ImageSpec& images) { images.width = -32; },
      [](ImageSpec& images) { images.channels = 0; },
      [](ImageSpec& images) { images.channels = -3; },
      [](ImageSpec& images) { images.channels = 4; },
      [](ImageSpec& images) { images.classes = 1; },
      [](ImageSpec& images) { images.mean.pop_back(); },
      [](ImageSpec& images) { images.std.push_back(1); }};
  for (size_t i = 0; i < faults.size(); ++i) {
    SCOPED_TRACE(i);
    ImageClassifier model = Flat();
    faults[i](model.images);
    EXPECT_THAT(ErrorOf(model, 1), HasSubstr("images: height, width and channels"));
  }
}

TEST(ImageClassifierTest, RejectsImagesBeyondAllMemory) {
  ImageClassifier model = Flat();
  model.images.height = model.images.width = int64_t{1} << 31;
  EXPECT_THAT(ErrorOf(model, 100), HasSubstr("too large"));
}

TEST(ImageClassifierTest, ReportsTheErrorsOfTheBody) {
  ImageClassifier model = Flat();
  model.body = [](NetworkBuilder& net, ValueId x) {
    return net.Conv("broken", x, {.out_channels = 0});
  };
  EXPECT_THAT(ErrorOf(model, 1), HasSubstr("layer 'broken'"));
}

TEST(ImageClassifierTest, FindsModelsByName) {
  const auto model = FindModel("wrn-16-1", {});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->name, "wrn-16-1");
  const auto unknown = FindModel("resnet-50", {});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("--model resnet-50: unknown model"));
  EXPECT_FALSE(FindModel("", {}).ok());
  EXPECT_FALSE(FindModel("wrn-16-1.toml", {}).ok());
}

TEST(ImageClassifierTest, ExamplesOfTheListExist) {
  ASSERT_FALSE(ModelFamilies().empty());
  for (const ModelFamily& family : ModelFamilies()) {
    // Paths of files are relative to the project's folder.
    const bool is_file = family.example.ends_with(".toml");
    const std::string example =
        is_file ? ExamplesFolder() + "/../" + family.example : family.example;
    EXPECT_TRUE(IsTranslator(example) || FindModel(example, {}).ok()) << family.example;
    EXPECT_FALSE(family.pattern.empty());
    EXPECT_FALSE(family.what.empty());
  }
}

}  // namespace
}  // namespace thimble
