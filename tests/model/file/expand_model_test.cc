#include "thimble/model/file/expand_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/file/model_text.h"
#include "thimble/model/file/parse_model.h"
#include "thimble/model/file/resolve_model.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<std::vector<ModelLayer>> Expand(const std::string& text) {
  auto model = ParseModel(text, "m.toml");
  THIMBLE_CHECK(model.ok(), "{}", model.error().message);
  const auto resolved = ResolveModel(*model);
  THIMBLE_CHECK(resolved.ok(), "{}", resolved.error().message);
  return ExpandModel(*model);
}

std::string ExpandRefusal(const std::string& text) {
  const auto layers = Expand(text);
  if (layers.ok()) return "was accepted";
  EXPECT_EQ(layers.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(layers.error().message, testing::StartsWith("m.toml:"));
  return layers.error().message.substr(7);
}

// "conv a.b <- 0" or "add <- 2, 0" for each layer; "images" comes before 0.
std::vector<std::string> Lines(const std::string& text) {
  const auto layers = Expand(text);
  THIMBLE_CHECK(layers.ok(), "{}", layers.error().message);
  std::vector<std::string> lines;
  for (const ModelLayer& layer : *layers) {
    std::string line = fmt::format("{} {}<- {}", layer.type->name,
                                   layer.name.empty() ? "" : layer.name + " ", layer.input);
    if (layer.type->is_sum) line += fmt::format(", {}", layer.other);
    lines.push_back(line);
  }
  return lines;
}

TEST(ExpandModel, WritesRepetitionsOut) {
  EXPECT_THAT(
      Lines(ModelText("{ type = \"relu\" },\n"
                      "{ type = \"batch_norm\", name = \"b{i}\", repeat = 3, first = 4, as = "
                      "\"last\" },\n"
                      "{ type = \"add\", from = \"last\", with = \"input\", repeat = 2 },\n")),
      ElementsAre("relu <- -1", "batch_norm b4 <- 0", "batch_norm b5 <- 1", "batch_norm b6 <- 2",
                  "add <- 3, -1", "add <- 4, -1"));
}

TEST(ExpandModel, PutsBlocksWhereTheyAreUsed) {
  const std::string blocks =
      "[blocks.sum]\nlayers = [{ type = \"batch_norm\", name = \"bn\" }, { type = \"add\", with = "
      "\"input\" }]\n"
      "[blocks.pair]\nlayers = [{ type = \"sum\", name = \"s{i}\", repeat = 2 }]\n";
  EXPECT_THAT(
      Lines(ModelText("{ type = \"relu\" },\n{ type = \"pair\", name = \"p\", as = \"pair\" },\n"
                      "{ type = \"add\", from = \"pair\", with = \"p\" },\n",
                      blocks)),
      ElementsAre("relu <- -1", "batch_norm p.s0.bn <- 0", "add <- 1, 0", "batch_norm p.s1.bn <- 2",
                  "add <- 3, 2", "add <- 4, 4"));
}

TEST(ExpandModel, ABlockWithoutANameAddsNone) {
  EXPECT_THAT(Lines(ModelText("{ type = \"a\" },\n",
                              "[blocks.a]\nlayers = [{ type = \"batch_norm\", name = \"bn\" }]\n")),
              ElementsAre("batch_norm bn <- -1"));
}

TEST(ExpandModel, ParametersStandForNumbers) {
  const auto layers = Expand(ModelText(
      "{ type = \"outer\", n = 3 },\n{ type = \"linear\", name = \"fc\", features = \"$classes\" "
      "},\n",
      "[blocks.outer]\nparameters = [\"n\"]\nlayers = [{ type = \"inner\", name = \"x{i}\", m = "
      "\"$n\", k = 5, repeat = \"$n\", first = \"$n\" }]\n"
      "[blocks.inner]\nparameters = [\"m\", \"k\"]\nlayers = [{ type = \"conv\", name = \"c\", "
      "channels "
      "= \"$m\", kernel = \"$k\", padding = \"$classes\" }]\n"));
  ASSERT_TRUE(layers.ok()) << layers.error().message;
  ASSERT_EQ(layers->size(), 4U);
  const ModelLayer& last = (*layers)[2];
  EXPECT_EQ(last.name, "x5.c");
  EXPECT_THAT(last.numbers, ElementsAre(3, 5, 1, 10));
  EXPECT_EQ(last.place.line, 10);
  EXPECT_EQ(last.used_at_line, 2);
  EXPECT_THAT((*layers)[3].numbers, ElementsAre(10));
  EXPECT_EQ((*layers)[3].used_at_line, 0);
}

TEST(ExpandModel, NumbersThatALayerCannotTake) {
  const std::string block =
      "[blocks.a]\nparameters = [\"n\"]\nlayers = [\n{ type = \"conv\", name = \"c\", channels = "
      "2, "
      "kernel = \"$n\" },\n{ type = \"relu\", repeat = \"$n\" }]\n";
  const auto use = [&](const std::string& n) {
    return ExpandRefusal(ModelText("{ type = \"a\", n = " + n + " },\n", block));
  };
  EXPECT_EQ(use("1"), "was accepted");
  EXPECT_EQ(use("0"), "7:53: 'kernel': $n is 0, expected 1 to 1024 (block used in line 2)");
  EXPECT_THAT(use("-9223372036854775808"), HasSubstr("$n is -9223372036854775808"));
  EXPECT_THAT(use("9223372036854775807"), HasSubstr("expected 1 to 1024"));
}

TEST(ExpandModel, NamesThatMeet) {
  const std::string block = "[blocks.a]\nlayers = [{ type = \"batch_norm\", name = \"b.c\" }]\n";
  EXPECT_EQ(
      ExpandRefusal(ModelText("{ type = \"a\", name = \"x\" },\n{ type = \"batch_norm\", name = "
                              "\"x.b.c\" },\n",
                              block)),
      "3:1: two layers get the name 'x.b.c'");
  EXPECT_THAT(ExpandRefusal(ModelText("{ type = \"a\", repeat = 2 },\n", block)),
              HasSubstr("two layers get the name 'b.c'"));
  EXPECT_THAT(ExpandRefusal(ModelText(
                  "{ type = \"batch_norm\", name = \"b{i}\", repeat = 2 },\n"
                  "{ type = \"batch_norm\", name = \"b{i}\", repeat = 2, first = 1 },\n")),
              HasSubstr("two layers get the name 'b1'"));
}

TEST(ExpandModel, OutputsThatNobodyUses) {
  EXPECT_EQ(
      ExpandRefusal(ModelText("{ type = \"relu\" },\n{ type = \"relu\", from = \"input\" },\n")),
      "2:1: the output of this layer is never used");
  EXPECT_EQ(ExpandRefusal(
                ModelText("{ type = \"relu\" },\n{ type = \"a\" },\n",
                          "[blocks.a]\nlayers = [\n{ type = \"relu\" },\n{ type = \"relu\", from = "
                          "\"input\" }]\n")),
            "7:1: the output of this layer is never used");
}

TEST(ExpandModel, LongNames) {
  const std::string word(64, 'x');
  std::string blocks;
  for (int i = 0; i < 3; ++i) {
    blocks += fmt::format("[blocks.b{}]\nlayers = [{{ type = \"b{}\", name = \"{}\" }}]\n", i,
                          i + 1, word);
  }
  blocks +=
      fmt::format("[blocks.b3]\nlayers = [{{ type = \"batch_norm\", name = \"{}\" }}]\n", word);
  EXPECT_EQ(ExpandRefusal(ModelText("{ type = \"b1\" },\n", blocks)), "was accepted");
  EXPECT_THAT(ExpandRefusal(ModelText("{ type = \"b0\" },\n", blocks)),
              HasSubstr("full name is longer than 200 bytes"));
}

// 32 blocks inside each other, each repeated 4000 times: nothing may be done 4000^32 times.
TEST(ExpandModel, RepetitionsInsideRepetitionsEndSoon) {
  std::string blocks;
  for (int i = 0; i < 32; ++i) {
    blocks += fmt::format("[blocks.b{}]\nlayers = [{{ type = \"{}\", repeat = 4000 }}]\n", i,
                          i == 31 ? "relu" : fmt::format("b{}", i + 1));
  }
  EXPECT_THAT(ExpandRefusal(ModelText("{ type = \"b0\" },\n", blocks)),
              HasSubstr("more than 4000 layers, counting repetitions"));
  EXPECT_EQ(ExpandRefusal(ModelText("{ type = \"relu\", repeat = 4000 },\n")), "was accepted");
  EXPECT_THAT(
      ExpandRefusal(ModelText("{ type = \"relu\", repeat = 4000 },\n{ type = \"relu\" },\n")),
      HasSubstr("3:1: more than 4000 layers"));
}

}  // namespace
}  // namespace thimble
