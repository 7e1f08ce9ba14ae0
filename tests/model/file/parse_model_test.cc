#include "thimble/model/file/parse_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/file/model_text.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ModelDescription MustParse(const std::string& text) {
  auto model = ParseModel(text, "m.toml");
  THIMBLE_CHECK(model.ok(), "{}", model.error().message);
  return std::move(model).value();
}

// The error message for the text, after the file's name.
std::string ParseRefusal(const std::string& text) {
  const auto model = ParseModel(text, "m.toml");
  if (model.ok()) return "was accepted";
  EXPECT_EQ(model.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(model.error().message, StartsWith("m.toml:"));
  return model.error().message.substr(7);
}

std::string RefusedLayer(const std::string& layer) {
  return ParseRefusal(ModelText(layer + ",\n"));
}

TEST(ParseModel, ReadsTheInput) {
  const ModelDescription model = MustParse(
      "[input]\nheight = 28\nwidth = 30\nchannels = 1\nclasses = 7\n\n"
      "[[layers]]\ntype = \"relu\"\n");
  EXPECT_EQ(model.path, "m.toml");
  EXPECT_EQ(model.images.height, 28);
  EXPECT_EQ(model.images.width, 30);
  EXPECT_EQ(model.images.channels, 1);
  EXPECT_EQ(model.images.classes, 7);
  EXPECT_EQ(model.images.mean.size(), 1U);
  EXPECT_EQ(model.images.std.size(), 1U);
  EXPECT_EQ(model.input_place, (SourcePlace{1, 1}));
}

TEST(ParseModel, ReadsLayersWithTheirPlaces) {
  const ModelDescription model = MustParse(ModelText(
      "{ type = \"conv\", name = \"a{i}\", channels = 4, padding = 1, repeat = 3, first = 2 },\n"
      "{ type = \"add\", from = \"input\", with = \"x\", as = \"y\" },\n"));
  ASSERT_EQ(model.body.layers.size(), 2U);
  const LayerDescription& conv = model.body.layers[0];
  EXPECT_EQ(conv.type, "conv");
  EXPECT_EQ(conv.name.text, "a{i}");
  EXPECT_EQ(conv.repeat.value, 3);
  EXPECT_EQ(conv.first.value, 2);
  EXPECT_EQ(conv.numbers.at("channels").value, 4);
  EXPECT_EQ(conv.numbers.at("channels").place.line, 2);
  EXPECT_EQ(conv.numbers.at("kernel").value, 3);
  EXPECT_EQ(conv.numbers.at("padding").value, 1);
  EXPECT_EQ(conv.place, (SourcePlace{2, 1}));
  const LayerDescription& add = model.body.layers[1];
  EXPECT_EQ(add.from.text, "input");
  EXPECT_EQ(add.with.text, "x");
  EXPECT_EQ(add.as.text, "y");
  EXPECT_EQ(add.repeat.value, 1);
  EXPECT_EQ(add.place, (SourcePlace{3, 1}));
}

TEST(ParseModel, ReadsBlocksInTheOrderOfTheFile) {
  const ModelDescription model = MustParse(
      ModelText("{ type = \"z\", n = \"$classes\" },\n",
                "[blocks.z]\nparameters = [\"n\"]\nlayers = [{ type = \"a\" }]\n"
                "[[blocks.a.layers]]\ntype = \"linear\"\nname = \"x\"\nfeatures = \"$k\"\n"));
  ASSERT_EQ(model.blocks.size(), 2U);
  EXPECT_EQ(model.blocks[0].name, "z");
  EXPECT_EQ(model.blocks[0].parameters[0].text, "n");
  EXPECT_EQ(model.blocks[0].layers[0].type, "a");
  EXPECT_EQ(model.blocks[1].layers[0].numbers.at("features").parameter, "k");
  EXPECT_EQ(model.body.layers[0].numbers.at("n").parameter, "classes");
}

TEST(ParseModel, SyntaxIsTomls) {
  EXPECT_THAT(ParseRefusal("[input\n"), StartsWith("1:"));
  EXPECT_THAT(ParseRefusal("[input]\nheight = \n"), StartsWith("2:"));
  EXPECT_THAT(ParseRefusal("[input]\nheight = 1\nheight = 1\n"), StartsWith("3:"));
  EXPECT_THAT(ParseRefusal("[input]\nheight = 99999999999999999999\n"), StartsWith("2:"));
  EXPECT_THAT(ParseRefusal("a = \"\xff\"\n"), StartsWith("1:"));
  EXPECT_THAT(RefusedLayer("{ type = \"relu\", type = \"relu\" }"), StartsWith("2:"));
  // Messages of the TOML parser may contain parts of the text.
  EXPECT_EQ(ParseRefusal("height = [i\nn]\n").find('\n'), std::string::npos);
}

TEST(ParseModel, TheTop) {
  EXPECT_EQ(ParseRefusal(""), "1:1: no [input]: expected its height, width, channels and classes");
  EXPECT_EQ(ParseRefusal(kInputText), "1:1: no [[layers]]: expected at least one");
  EXPECT_THAT(ParseRefusal("batch = 3\n" + ModelText("")),
              StartsWith("1:1: unknown key \"batch\""));
  EXPECT_THAT(ParseRefusal("[laeyrs]\n"), StartsWith("1:2: unknown key \"laeyrs\""));
  EXPECT_EQ(ParseRefusal("input = 3\nlayers = []\n"), "1:9: [input]: expected a table");
  EXPECT_EQ(ParseRefusal(ModelText("")), "1:10: 'layers': expected a list of layers, at least one");
  EXPECT_THAT(ParseRefusal("layers = 3\n" + kInputText), StartsWith("1:10: 'layers': expected"));
  EXPECT_EQ(RefusedLayer("3"), "2:1: a layer: expected a table");
  EXPECT_EQ(ParseRefusal(ModelText("{ type = \"relu\" }", "blocks = 3\n")),
            "3:10: [blocks]: expected a table");
}

TEST(ParseModel, TheInput) {
  const std::string layers = "layers = [{ type = \"relu\" }]\n";
  EXPECT_EQ(ParseRefusal(layers + "[input]\nheight = 8\nwidth = 8\nclasses = 2\n"),
            "2:1: [input] has no 'channels'");
  EXPECT_THAT(ParseRefusal(layers + kInputText + "depth = 3\n"),
              StartsWith("7:1: unknown key \"depth\""));
  EXPECT_EQ(ParseRefusal(layers + "[input]\nheight = \"8\"\n"),
            "3:10: 'height': expected a whole number");
  EXPECT_EQ(ParseRefusal(layers + "[input]\nheight = 8.0\n"),
            "3:10: 'height': expected a whole number");
  EXPECT_EQ(ParseRefusal(layers + "[input]\nheight = \"$classes\"\n"),
            "3:10: 'height': expected a whole number");
  EXPECT_EQ(ParseRefusal(layers + "[input]\nheight = 0\n"),
            "3:10: 'height' is 0, expected 1 to 8192");
  EXPECT_EQ(ParseRefusal(layers + "[input]\nclasses = 1\n"),
            "3:11: 'classes' is 1, expected 2 to 65536");
  EXPECT_THAT(ParseRefusal(layers + "[input]\nwidth = -9223372036854775808\n"),
              HasSubstr("expected 1 to 8192"));
}

TEST(ParseModel, Types) {
  EXPECT_EQ(RefusedLayer("{ name = \"a\" }"), "2:1: layer has no 'type'");
  EXPECT_EQ(RefusedLayer("{ type = 3 }"), "2:10: 'type': expected a string");
  EXPECT_EQ(RefusedLayer("{ type = \"dense\" }"),
            "2:10: unknown type 'dense'; expected conv, batch_norm, group_norm, relu, dropout, "
            "add, avg_pool, global_avg_pool, linear or a block of this file");
}

TEST(ParseModel, KeysOfALayer) {
  EXPECT_EQ(RefusedLayer("{ type = \"relu\", name = \"r\" }"),
            "2:18: unknown key \"name\"; 'relu' takes as, from, repeat, first");
  EXPECT_EQ(
      RefusedLayer("{ type = \"conv\", kernle = 3 }"),
      "2:18: unknown key \"kernle\"; 'conv' takes name, channels, kernel, stride, padding, as, "
      "from, repeat, first");
  EXPECT_THAT(RefusedLayer("{ type = \"relu\", with = \"input\" }"), HasSubstr("unknown key"));
  EXPECT_EQ(RefusedLayer("{ type = \"conv\", channels = 3 }"), "2:1: 'conv' needs 'name'");
  EXPECT_EQ(RefusedLayer("{ type = \"conv\", name = \"a\" }"), "2:1: 'conv' needs 'channels'");
  EXPECT_EQ(RefusedLayer("{ type = \"add\" }"), "2:1: 'add' needs 'with'");
  EXPECT_EQ(RefusedLayer("{ type = \"avg_pool\", kernel = 2 }"), "2:1: 'avg_pool' needs 'stride'");
}

TEST(ParseModel, KeysOfABlock) {
  const auto use = [](const std::string& arguments) {
    return ParseRefusal(ModelText("{ type = \"a\"" + arguments + " },\n",
                                  "[blocks.a]\nparameters = [\"n\", \"m\"]\n"
                                  "layers = [{ type = \"relu\", repeat = \"$n\" }]\n"));
  };
  EXPECT_EQ(use(", n = 2, m = -9223372036854775808"), "was accepted");
  EXPECT_EQ(use(", n = 2"), "2:1: 'a' needs 'm'");
  EXPECT_EQ(use(", n = 2, m = 1, k = 3"),
            "2:29: unknown key \"k\"; 'a' takes name, n, m, as, from, repeat, first");
  EXPECT_EQ(use(", n = 2, m = 1.5"),
            "2:26: 'm': expected a whole number, or a parameter such as \"$channels\"");
  EXPECT_THAT(use(", n = 2, with = \"input\""), HasSubstr("unknown key \"with\""));
}

TEST(ParseModel, NumbersOfALayer) {
  EXPECT_EQ(RefusedLayer("{ type = \"conv\", name = \"a\", channels = 0 }"),
            "2:41: 'channels' is 0, expected 1 to 65536");
  EXPECT_EQ(RefusedLayer("{ type = \"conv\", channels = 9223372036854775807 }"),
            "2:29: 'channels' is 9223372036854775807, expected 1 to 65536");
  EXPECT_THAT(RefusedLayer("{ type = \"conv\", padding = -1 }"), HasSubstr("expected 0 to 1024"));
  EXPECT_THAT(RefusedLayer("{ type = \"relu\", repeat = 0 }"), HasSubstr("expected 1 to 4000"));
  EXPECT_THAT(RefusedLayer("{ type = \"relu\", repeat = 4001 }"), HasSubstr("expected 1 to 4000"));
  for (const char* value :
       {"1.5", "true", "[1]", "{}", "\"many\"", "\"$\"", "\"$a b\"", "1979-05-27"}) {
    EXPECT_EQ(RefusedLayer(std::string("{ type = \"conv\", channels = ") + value + " }"),
              "2:29: 'channels': expected a whole number, or a parameter such as \"$channels\"")
        << value;
  }
}

TEST(ParseModel, Names) {
  EXPECT_EQ(RefusedLayer("{ type = \"relu\", as = 3 }"), "2:23: 'as': expected a string");
  for (const char* name : {"", "a b", "a/b", "{i}{i}", "ä", "a\\u0007", "{", "a{j}"}) {
    EXPECT_THAT(RefusedLayer(std::string("{ type = \"linear\", name = \"") + name + "\" }"),
                HasSubstr("expected 1 to 64 letters, digits, '_', '-' and '.'"))
        << name;
  }
  EXPECT_THAT(RefusedLayer("{ type = \"relu\", from = \"a{i}\" }"), HasSubstr("letters, digits"));
  EXPECT_EQ(RefusedLayer("{ type = \"relu\", as = \"a\\nb\\u001b\" }"),
            "2:23: 'as': \"a\\nb\\u001b\": expected 1 to 64 letters, digits, '_', '-' and '.'");
}

TEST(ParseModel, HostileLengthsDoNotFillMessages) {
  const std::string much(100'000, 'x');
  for (const std::string& layer :
       {"{ type = \"" + much + "\" }", "{ type = \"relu\", as = \"" + much + "\" }",
        "{ type = \"relu\", " + much + " = 1 }",
        "{ type = \"relu\", repeat = \"$" + much + "\" }"}) {
    EXPECT_LT(RefusedLayer(layer).size(), 300U);
  }
  EXPECT_LT(ParseRefusal(much + " = 1\n").size(), 300U);
  EXPECT_LT(ParseRefusal(kInputText + much + " = 1\n").size(), 300U);
  EXPECT_LT(ParseRefusal(kInputText + "[blocks." + much + "]\n").size(), 300U);
}

TEST(ParseModel, Repetitions) {
  EXPECT_EQ(RefusedLayer("{ type = \"linear\", name = \"a\", features = 1, repeat = 2 }"),
            "2:27: 'a' is repeated: its name needs {i}, the number of the repetition");
  EXPECT_EQ(RefusedLayer("{ type = \"linear\", name = \"a{i}\", features = 1 }"),
            "2:27: {i} in the name requires 'repeat'");
  EXPECT_EQ(RefusedLayer("{ type = \"relu\", first = 1 }"), "2:26: 'first' without 'repeat'");
}

TEST(ParseModel, Blocks) {
  const auto refused = [](const std::string& blocks) {
    return ParseRefusal(ModelText("{ type = \"relu\" },\n", blocks));
  };
  EXPECT_EQ(refused("[blocks.a]\n"), "4:9: block 'a' has no 'layers'");
  EXPECT_THAT(refused("[blocks.a]\nlayers = []\n"), StartsWith("5:10: 'layers': expected"));
  EXPECT_EQ(refused("[blocks.conv]\n"), "4:9: block 'conv': the name of a layer type is reserved");
  EXPECT_THAT(refused("[blocks.\"a b\"]\n"), StartsWith("4:9: block \"a b\": expected 1 to 64"));
  EXPECT_EQ(refused("[blocks]\na = 3\n"), "5:5: block 'a': expected a table");
  EXPECT_THAT(refused("[blocks.a]\nlayer = []\n"), StartsWith("5:1: unknown key \"layer\""));
  EXPECT_THAT(refused("[blocks.a]\nparameters = \"n\"\n"),
              StartsWith("5:14: 'parameters': expected"));
  EXPECT_EQ(refused("[blocks.a]\nparameters = [3]\n"), "5:15: 'parameters': expected a string");
  EXPECT_EQ(refused("[blocks.a]\nparameters = [\"n\",\n\"n\"]\n"),
            "6:1: parameter 'n' is given twice");
  for (const char* word : {"type", "name", "as", "from", "with", "repeat", "first", "classes"}) {
    EXPECT_EQ(refused(std::string("[blocks.a]\nparameters = [\"") + word + "\"]\n"),
              std::string("5:15: parameter '") + word + "': this name is reserved");
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many += "\"p" + std::to_string(i) + "\", ";
  EXPECT_THAT(refused("[blocks.a]\nparameters = [" + many + "]\n"), HasSubstr("at most 32"));
}

}  // namespace
}  // namespace thimble
