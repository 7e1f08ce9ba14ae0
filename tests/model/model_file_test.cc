#include "thimble/model/model_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/file/model_text.h"
#include "tests/support/model_graphs.h"
#include "tests/support/test_paths.h"
#include "tests/train/file_fixture.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Example(const std::string& name) {
  return fmt::format("{}/models/{}.toml", ExamplesFolder(), name);
}

TEST(ModelFile, IsWhatEndsInToml) {
  EXPECT_TRUE(IsModelFile("net.toml"));
  EXPECT_TRUE(IsModelFile("a/b.toml/net.toml"));
  EXPECT_FALSE(IsModelFile("wrn-28-2"));
  EXPECT_FALSE(IsModelFile("net.toml/"));
  EXPECT_FALSE(IsModelFile(""));
}

TEST(ModelFile, IsCalledByItsStem) {
  EXPECT_EQ(ModelName("net.toml"), "net");
  EXPECT_EQ(ModelName("/a/b.c/my.net.toml"), "my.net");
  EXPECT_EQ(ModelName("wrn-28-2"), "wrn-28-2");
  EXPECT_EQ(ModelName("a/.toml"), "");
}

// The built-in network, written as a file.
TEST(ModelFile, TheWideResNetIsTheBuiltInOne) {
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
    for (const int64_t batch : {1, 2, 100}) {
      const Network built_in = MakeNetwork("wrn-28-2", batch, mode);
      const Network from_file = MakeNetwork(Example("wrn-28-2"), batch, mode);
      EXPECT_EQ(built_in.graph, from_file.graph);
      EXPECT_EQ(built_in.loss, from_file.loss);
      ASSERT_EQ(built_in.inits.size(), from_file.inits.size());
      for (size_t i = 0; i < built_in.inits.size(); ++i) {
        EXPECT_EQ(built_in.inits[i].name, from_file.inits[i].name);
        EXPECT_EQ(built_in.inits[i].kind, from_file.inits[i].kind);
        EXPECT_EQ(built_in.inits[i].scale, from_file.inits[i].scale);
      }
    }
  }
}

TEST(ModelFile, AnotherWideResNetIsAnother) {
  EXPECT_NE(MakeNetwork("wrn-28-1", 2, Mode::kTrain).graph,
            MakeNetwork(Example("wrn-28-2"), 2, Mode::kTrain).graph);
}

TEST(ModelFile, ExamplesAreNetworks) {
  for (const auto& [name, parameters] :
       {std::pair("cnn", 288'746), {"resnet", 272'474}, {"mlp", 922'378}}) {
    for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {
      const Network network = MakeNetwork(Example(name), 3, mode);
      EXPECT_TRUE(VerifyGraph(network.graph, BuiltinOps()).ok()) << name;
      EXPECT_EQ(CountParameters(network.graph), parameters) << name;
    }
  }
}

TEST(ModelFile, KeepsWhatTheDataSays) {
  ImageSpec images;
  images.mean = {1, 2, 3};
  images.std = {4, 5, 6};
  images.augmentation = Augmentation::kCropFlip;
  const auto model = FindModel(Example("mlp"), images);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->name, "mlp");
  EXPECT_EQ(model->images.mean, images.mean);
  EXPECT_EQ(model->images.std, images.std);
  EXPECT_EQ(model->images.augmentation, Augmentation::kCropFlip);
  EXPECT_THAT(model->file_text, StartsWith("# A multilayer perceptron"));
}

TEST(ModelFile, OtherImages) {
  const auto file = ParseModelFile(ModelText(kScores), "m.toml");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(ToClassifier(*file, file->images).ok());
  for (int64_t ImageSpec::*field :
       {&ImageSpec::height, &ImageSpec::width, &ImageSpec::channels, &ImageSpec::classes}) {
    ImageSpec images = file->images;
    images.*field += 1;
    EXPECT_FALSE(ToClassifier(*file, images).ok());
  }
  const auto model = ToClassifier(*file, {});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message,
            "m.toml:4:1: [input] is 8 x 8 images of 3 channels in 10 classes, the data has 32 x 32 "
            "images of 3 channels in 10 classes");
}

using ModelFileOnDisk = FileFixture;

TEST_F(ModelFileOnDisk, IsReadBounded) {
  path_ = folder_ + "/net.toml";
  Put(path_, ModelText(kScores));
  const auto file = ReadModelFile(path_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->path, path_);
  EXPECT_EQ(file->text, ModelText(kScores));
  EXPECT_EQ(file->layers.size(), 1U);
  Put(path_, std::string(kMaxModelFileBytes + 1, '#'));
  const auto long_file = ReadModelFile(path_);
  ASSERT_FALSE(long_file.ok());
  EXPECT_THAT(long_file.error().message, HasSubstr("expected at most 262144"));
}

TEST_F(ModelFileOnDisk, MissingOrAFolder) {
  for (const std::string& path : {folder_ + "/none.toml", folder_}) {
    const auto file = ReadModelFile(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(file.error().message, StartsWith(path + ": "));
  }
}

// Invalid files: each error gives the place and the reason.
struct Malformed {
  const char* name;
  std::string text;
  const char* error;  // a part of it
};

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::vector<Malformed> MalformedFiles() {
  const std::string relu = "{ type = \"relu\" },\n";
  return {
      {"Empty", "", "m.toml:1:1: no [input]"},
      {"Binary",
       std::string("\x7f"
                   "ELF\x02\x01\0\0",
                   8),
       "m.toml:1:"},
      {"ZeroBytes", std::string(1000, '\0'), "m.toml:1:"},
      {"Cut", ModelText(kScores).substr(0, 40), "m.toml:"},
      {"ByteOrderMarkOnly", "\xef\xbb\xbf", "no [input]"},
      {"NestedArrays", "layers = " + std::string(100'000, '['), "m.toml:1:"},
      {"NestedTables", "layers = [" + Repeated("{a=", 50'000), "m.toml:1:"},
      {"DottedKey", Repeated("a.", 50'000) + "a = 1\n", "m.toml:1: a key has more than 32 parts"},
      {"BracketsWithoutAKey", "[[=", "m.toml:1:"},  // toml++ 3.3 asserts that there is one
      {"LineBreakInTheReason", "[input]\nheight = [i\nn]\n", "m.toml:2:"},
      {"AlmostABlank", "\xef\xbb\xb7 = 1\n", "m.toml:1:"},  // U+FEF7: unreachable for toml++ 3.3
      {"Config", "model = \"wrn-28-2\"\nbatch = 7\n", "m.toml:1:1: unknown key \"model\""},
      {"OptionsOfTraining", ModelText(relu) + "lr = 0.1\n", "m.toml:9:1: unknown key \"lr\""},
      {"LayersAsATable", "[layers]\ntype = \"relu\"\n" + kInputText, "m.toml:1:1: 'layers'"},
      {"InputAsAList", "[[input]]\n[[layers]]\n", "m.toml:1:1: [input]: expected a table"},
      {"NegativeSize", "[input]\nheight = -1\n[[layers]]\n", "m.toml:2:10: 'height' is -1"},
      {"HugeSize", "[input]\nheight = 9223372036854775807\n", "m.toml:2:10: 'height' is 92233"},
      {"Overflow", "[input]\nheight = 9223372036854775808\n", "m.toml:2:"},
      {"NotANumber", "[input]\nheight = nan\n", "m.toml:2:10: 'height': expected a whole number"},
      {"Cycle", ModelText("{ type = \"a\" },\n", "[blocks.a]\nlayers = [{ type = \"a\" }]\n"),
       "m.toml:5:11: a block contains itself: a -> a"},
      {"RepeatTooOften", ModelText("{ type = \"relu\", repeat = 1000000000000 },\n"),
       "m.toml:2:27: 'repeat' is 1000000000000"},
      {"UnknownValue", ModelText("{ type = \"relu\", from = \"nothing\" },\n"),
       "m.toml:2:25: 'from': no layer above is called 'nothing'"},
      {"SumOfItself", ModelText("{ type = \"add\", with = \"s\", as = \"s\" },\n"),
       "m.toml:2:24: 'with': no layer above is called 's'"},
      {"OtherShapes",
       ModelText("{ type = \"conv\", name = \"c\", channels = 3 },\n{ type = \"add\", with = "
                 "\"input\" },\n" +
                 kScores),
       "m.toml:3:1: layer 'c' (add)"},
      {"NoScores", ModelText(relu), "m.toml:2:1: the last layer outputs scores"},
      {"ManyLayers", ModelText(Repeated(relu, 4001)), "m.toml:4002:1: more than 4000 layers"},
  };
}

TEST(ModelFile, Malformed) {
  for (const Malformed& file : MalformedFiles()) {
    SCOPED_TRACE(file.name);
    const auto model = [&]() -> Result<Network> {
      THIMBLE_ASSIGN_OR_RETURN(const ModelFile parsed, ParseModelFile(file.text, "m.toml"));
      THIMBLE_ASSIGN_OR_RETURN(const ImageClassifier made, ToClassifier(parsed, parsed.images));
      return BuildNetwork(made, BuiltinOps(), 2, Mode::kTrain);
    }();
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(model.error().message, HasSubstr(file.error));
    EXPECT_LT(model.error().message.size(), 400U);
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace thimble
