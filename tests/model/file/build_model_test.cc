#include "thimble/model/file/build_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/file/model_text.h"
#include "thimble/model/model_file.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result<Network> Build(const std::string& text, int64_t batch = 2) {
  const auto file = ParseModelFile(text, "m.toml");
  THIMBLE_CHECK(file.ok(), "{}", file.error().message);
  const auto model = ToClassifier(*file, file->images);
  THIMBLE_CHECK(model.ok(), "{}", model.error().message);
  return BuildNetwork(*model, BuiltinOps(), batch, Mode::kTrain);
}

std::string Refusal(const std::string& text, int64_t batch = 2) {
  const auto network = Build(text, batch);
  if (network.ok()) return "was accepted";
  EXPECT_EQ(network.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(network.error().message, StartsWith("m.toml:"));
  return network.error().message.substr(7);
}

TEST(BuildModel, BuildsWhatTheBuilderWould) {
  const auto from_file =
      Build(ModelText(R"({ type = "conv", name = "c", channels = 4, padding = 1 },
    { type = "batch_norm", name = "b" },
    { type = "relu", as = "r" },
    { type = "avg_pool", kernel = 2, stride = 2, as = "p" },
    { type = "conv", name = "d", from = "r", channels = 4, kernel = 2, stride = 2 },
    { type = "add", with = "p" },
    { type = "global_avg_pool" },
    { type = "linear", name = "fc", features = "$classes" },
    )"));
  ASSERT_TRUE(from_file.ok()) << from_file.error().message;
  ImageSpec images;
  images.height = images.width = 8;
  const auto by_hand = BuildNetwork(
      {"by hand", images,
       [](NetworkBuilder& net, ValueId x) {
         const ValueId r =
             net.Relu(net.BatchNorm("b", net.Conv("c", x, {.out_channels = 4, .padding = 1})));
         const ValueId p = net.AveragePool(r, 2, 2);
         const ValueId d = net.Conv("d", r, {.out_channels = 4, .kernel = 2, .stride = 2});
         return net.Linear("fc", net.GlobalAveragePool(net.Add(d, p)), 10);
       }},
      BuiltinOps(), 2, Mode::kTrain);
  ASSERT_TRUE(by_hand.ok()) << by_hand.error().message;
  EXPECT_EQ(from_file->graph, by_hand->graph);
}

TEST(BuildModel, GroupNormAndDropout) {
  const auto from_file = Build(ModelText(R"({ type = "conv", name = "c", channels = 4 },
    { type = "group_norm", name = "g", groups = 2 },
    { type = "dropout", percent = 25 },
    { type = "linear", name = "fc", features = "$classes" },
    )"));
  ASSERT_TRUE(from_file.ok()) << from_file.error().message;
  ImageSpec images;
  images.height = images.width = 8;
  const auto by_hand = BuildNetwork({"by hand", images,
                                     [](NetworkBuilder& net, ValueId x) {
                                       const ValueId norm = net.GroupNorm(
                                           "g", net.Conv("c", x, {.out_channels = 4}), 2);
                                       return net.Linear("fc", net.Dropout(norm, 0.25), 10);
                                     }},
                                    BuiltinOps(), 2, Mode::kTrain);
  ASSERT_TRUE(by_hand.ok()) << by_hand.error().message;
  EXPECT_EQ(from_file->graph, by_hand->graph);
}

TEST(BuildModel, GroupsThatChannelsCannotBeCutInto) {
  EXPECT_THAT(
      Refusal(ModelText("{ type = \"group_norm\", name = \"g\", groups = 2 },\n" + kScores)),
      AllOf(StartsWith("2:1: layer 'g'"), HasSubstr("3 channels cannot be divided into 2")));
}

TEST(BuildModel, ShapesThatDoNotGoTogether) {
  EXPECT_THAT(Refusal(ModelText("{ type = \"conv\", name = \"c\", channels = 4 },\n"
                                "{ type = \"add\", with = \"input\" },\n" +
                                kScores)),
              AllOf(StartsWith("3:1: layer 'c' (add)"), HasSubstr("(2, 8, 8, 3)"),
                    HasSubstr("(2, 6, 6, 4)")));
  EXPECT_THAT(Refusal(ModelText(kScores + "{ type = \"conv\", name = \"c\", channels = 4 },\n")),
              StartsWith("3:1: layer 'c': expected an input (B, H, W, C), got (2, 10)"));
  EXPECT_THAT(Refusal(ModelText("{ type = \"avg_pool\", kernel = 9, stride = 1 },\n" + kScores)),
              AllOf(StartsWith("2:1: "), HasSubstr("kernel is 9, larger than the 8 x 8 image")));
  EXPECT_THAT(Refusal(ModelText("{ type = \"conv\", name = \"c\", channels = 4, kernel = 9 },\n" +
                                kScores)),
              AllOf(StartsWith("2:1: "), HasSubstr("larger than the padded input")));
  EXPECT_THAT(Refusal(ModelText(kScores + "{ type = \"global_avg_pool\" },\n")),
              StartsWith("3:1: "));
}

TEST(BuildModel, PoolingWantsASquare) {
  std::string text = ModelText("{ type = \"global_avg_pool\" },\n" + kScores);
  text.replace(text.find("width = 8"), 9, "width = 9");
  EXPECT_THAT(Refusal(text), AllOf(StartsWith("2:1: "), HasSubstr("not square")));
}

TEST(BuildModel, ErrorsInBlocksNameTheUseToo) {
  EXPECT_THAT(
      Refusal(ModelText("{ type = \"relu\" },\n{ type = \"a\", name = \"x\" },\n" + kScores,
                        "[blocks.a]\nlayers = [\n{ type = \"conv\", name = \"c\", channels = "
                        "4 },\n{ type = \"add\", with = \"input\" }]\n")),
      StartsWith("9:1 (block used in line 3): layer 'x.c' (add)"));
}

TEST(BuildModel, ScoresThatAreNone) {
  EXPECT_EQ(Refusal(ModelText("{ type = \"relu\" },\n")),
            "2:1: the last layer outputs scores of shape (2, 8, 8, 3), expected (2, 10)");
  EXPECT_THAT(Refusal(ModelText("{ type = \"linear\", name = \"fc\", features = 9 },\n")),
              StartsWith("2:1: the last layer outputs scores of shape (2, 9)"));
}

TEST(BuildModel, SizesBeyondAllMachines) {
  const std::string wide = "{ type = \"conv\", name = \"w\", channels = 65536, kernel = 1 },\n";
  EXPECT_THAT(Refusal(ModelText(wide +
                                "{ type = \"conv\", name = \"c\", channels = 65536, kernel = 1024, "
                                "padding = 1024 },\n" +
                                kScores)),
              AllOf(StartsWith("3:1: the network has "), HasSubstr("parameters")));
  const std::string padded =
      "{ type = \"conv\", name = \"w\", channels = 65536, kernel = 1, padding = 1024 },\n";
  EXPECT_THAT(Refusal(ModelText(padded + "{ type = \"relu\", repeat = 30 },\n" + kScores)),
              AllOf(StartsWith("3:1: "), HasSubstr("activations up to here at batch 2")));
  EXPECT_THAT(
      Refusal(ModelText("{ type = \"conv\", name = \"w{i}\", channels = 512, kernel = 1024, "
                        "padding = 1023, repeat = 2 },\n" +
                        kScores)),
      AllOf(StartsWith("2:1: "), HasSubstr("operations")));
  EXPECT_THAT(Refusal(ModelText(padded + kScores), 1 << 20),
              AllOf(StartsWith("2:1: "), HasSubstr("too large")));
}

TEST(BuildModel, ManyLayersOfOneNameTakeNoTime) {
  // Each repetition gives a value called "normalize.relu": finding a new name must be fast.
  EXPECT_EQ(Refusal(ModelText("{ type = \"relu\", repeat = 2000 },\n" + kScores)), "was accepted");
}

}  // namespace
}  // namespace thimble
