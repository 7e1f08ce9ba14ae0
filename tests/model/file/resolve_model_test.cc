#include "thimble/model/file/resolve_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/file/model_text.h"
#include "thimble/model/file/parse_model.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::string ResolveRefusal(const std::string& text) {
  auto model = ParseModel(text, "m.toml");
  THIMBLE_CHECK(model.ok(), "{}", model.error().message);
  const auto resolved = ResolveModel(*model);
  if (resolved.ok()) return "was accepted";
  EXPECT_EQ(resolved.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(resolved.error().message, testing::StartsWith("m.toml:"));
  return resolved.error().message.substr(7);
}

std::string BlockText(const std::string& name, const std::string& layers) {
  return fmt::format("[blocks.{}]\nlayers = [{}]\n", name, layers);
}

TEST(ResolveModel, FindsWhatLayersName) {
  auto model = ParseModel(ModelText(R"({ type = "batch_norm", name = "bn", as = "x" },
    { type = "relu" },
    { type = "add", with = "bn" },
    { type = "add", from = "x", with = "input" },
    { type = "relu", from = "input" },
    )"),
                          "m.toml");
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(ResolveModel(*model).ok());
  const auto& layers = model->body.layers;
  EXPECT_EQ(layers[0].input_index, kBlockInput);
  EXPECT_EQ(layers[1].input_index, 0);
  EXPECT_EQ(layers[2].input_index, 1);
  EXPECT_EQ(layers[2].with_index, 0);
  EXPECT_EQ(layers[3].input_index, 0);
  EXPECT_EQ(layers[3].with_index, kBlockInput);
  EXPECT_EQ(layers[4].input_index, kBlockInput);
}

TEST(ResolveModel, UnknownValues) {
  EXPECT_EQ(ResolveRefusal(ModelText("{ type = \"relu\", from = \"x\" },\n")),
            "2:25: 'from': no layer above is called 'x'");
  EXPECT_EQ(ResolveRefusal(
                ModelText("{ type = \"add\", with = \"y\" },\n{ type = \"relu\", as = \"y\" },\n")),
            "2:24: 'with': no layer above is called 'y'");
  EXPECT_THAT(ResolveRefusal(ModelText("{ type = \"relu\", as = \"x\", from = \"x\" },\n")),
              HasSubstr("no layer above"));
  // Repetitions have many names; `as` names the last one.
  EXPECT_THAT(ResolveRefusal(ModelText("{ type = \"batch_norm\", name = \"b{i}\", repeat = 2 },\n"
                                       "{ type = \"relu\", from = \"b1\" },\n")),
              HasSubstr("no layer above is called 'b1'"));
}

TEST(ResolveModel, NamesOfABlockAreItsOwn) {
  const std::string outer = "{ type = \"relu\", as = \"x\" },\n{ type = \"a\" },\n";
  EXPECT_EQ(ResolveRefusal(ModelText(outer, BlockText("a", "{ type = \"relu\", from = \"x\" }"))),
            "6:35: 'from': no layer above is called 'x' in block 'a'");
  EXPECT_EQ(ResolveRefusal(ModelText(outer, BlockText("a", "{ type = \"relu\", as = \"x\" }"))),
            "was accepted");
}

TEST(ResolveModel, NamesUsedTwice) {
  EXPECT_EQ(ResolveRefusal(
                ModelText("{ type = \"relu\", as = \"x\" },\n{ type = \"relu\", as = \"x\" },\n")),
            "3:23: the name 'x' is used twice, first in line 2");
  EXPECT_THAT(ResolveRefusal(ModelText("{ type = \"batch_norm\", name = \"x\" },\n"
                                       "{ type = \"relu\", as = \"x\" },\n")),
              HasSubstr("used twice"));
  EXPECT_EQ(ResolveRefusal(ModelText("{ type = \"batch_norm\", name = \"x\", as = \"x\" },\n")),
            "was accepted");
  EXPECT_EQ(ResolveRefusal(ModelText("{ type = \"relu\", as = \"input\" },\n")),
            "2:23: 'input' names the input; a layer needs another name");
}

TEST(ResolveModel, Parameters) {
  const std::string block =
      "[blocks.a]\nparameters = [\"n\", \"m\"]\n"
      "layers = [{ type = \"linear\", name = \"l\", features = \"$n\" }, "
      "{ type = \"relu\", repeat = \"$m\" }]\n";
  const auto use = [&](const std::string& arguments) {
    return ResolveRefusal(ModelText("{ type = \"a\"" + arguments + " },\n", block));
  };
  EXPECT_EQ(use(", n = 2, m = \"$classes\""), "was accepted");
  EXPECT_EQ(use(", n = \"$n\", m = 1"),
            "2:19: unknown parameter '$n'; only blocks have parameters");
}

TEST(ResolveModel, ParametersOfBlocksThatNobodyUses) {
  const std::string layers = "{ type = \"relu\" },\n";
  EXPECT_EQ(ResolveRefusal(ModelText(
                layers, "[blocks.a]\nparameters = [\"n\"]\nlayers = [{ type = \"relu\" }]\n")),
            "5:15: parameter 'n' of block 'a' is never used");
  EXPECT_EQ(
      ResolveRefusal(ModelText(layers, BlockText("a", "{ type = \"relu\", repeat = \"$k\" }"))),
      "5:37: unknown parameter '$k'");
}

TEST(ResolveModel, BlocksInsideThemselves) {
  const std::string layers = "{ type = \"relu\" },\n";
  EXPECT_EQ(
      ResolveRefusal(ModelText(layers, BlockText("a", "{ type = \"relu\" }, { type = \"a\" }"))),
      "5:30: a block contains itself: a -> a");
  EXPECT_EQ(
      ResolveRefusal(ModelText(
          layers, BlockText("start", "{ type = \"a\" }") + BlockText("a", "{ type = \"b\" }") +
                      BlockText("b", "{ type = \"c\" }") + BlockText("c", "{ type = \"a\" }"))),
      "11:11: a block contains itself: a -> b -> c -> a");
}

// A chain of blocks, each using the next.
std::string Chain(int length, bool reversed) {
  std::string text;
  for (int i = 0; i < length; ++i) {
    const int block = reversed ? length - 1 - i : i;
    text += BlockText(fmt::format("b{}", block),
                      block + 1 == length ? "{ type = \"relu\" }"
                                          : fmt::format("{{ type = \"b{}\" }}", block + 1));
  }
  return ModelText("{ type = \"b0\" },\n", text);
}

TEST(ResolveModel, DeepBlocks) {
  for (const bool reversed : {false, true}) {
    EXPECT_EQ(ResolveRefusal(Chain(kMaxBlockDepth, reversed)), "was accepted");
    EXPECT_THAT(ResolveRefusal(Chain(kMaxBlockDepth + 1, reversed)),
                HasSubstr("more than 32 levels deep"));
    EXPECT_THAT(ResolveRefusal(Chain(2000, reversed)), HasSubstr("more than 32 levels deep"));
  }
}

}  // namespace
}  // namespace thimble
