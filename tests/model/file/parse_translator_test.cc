#include "thimble/model/file/parse_translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/model/model_file.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSmall =
    "[translator]\n"
    "width = 64\n"
    "feed_forward = 128\n"
    "heads = 2\n"
    "encoder_kernels = [3, 5, 7]\n"
    "decoder_kernels = [4]\n"
    "dropout = 0.25\n"
    "label_smoothing = 0\n";

std::string RefusalOf(const std::string& text) {
  const auto spec = ParseTranslator(text, "net.toml");
  if (spec.ok()) return "was accepted";
  EXPECT_EQ(spec.error().kind, ErrorKind::kBadInput);
  return spec.error().message;
}

TEST(ParseTranslator, ReadsWhatIsGiven) {
  const auto spec = ParseTranslator(kSmall, "net.toml");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->width, 64);
  EXPECT_EQ(spec->feed_forward, 128);
  EXPECT_EQ(spec->heads, 2);
  EXPECT_THAT(spec->encoder_kernels, ElementsAre(3, 5, 7));
  EXPECT_THAT(spec->decoder_kernels, ElementsAre(4));
  EXPECT_EQ(spec->dropout, 0.25);
  EXPECT_EQ(spec->label_smoothing, 0);
  EXPECT_EQ(spec->attention_dropout, TranslatorSpec().attention_dropout);
  EXPECT_EQ(spec->text, kSmall);
}

TEST(ParseTranslator, KnowsItsFiles) {
  EXPECT_TRUE(HasTranslatorTable(kSmall));
  EXPECT_TRUE(HasTranslatorTable("[translator]\nnonsense = 1\n"));
  EXPECT_FALSE(HasTranslatorTable("[input]\nheight = 3\n"));
  EXPECT_FALSE(HasTranslatorTable("not toml ["));
  EXPECT_FALSE(HasTranslatorTable(""));
}

TEST(ParseTranslator, ErrorsHaveAPlace) {
  EXPECT_EQ(RefusalOf("[translator]\nwidht = 3\n"),
            "net.toml:2:1: unknown key \"widht\"; [translator] has width, feed_forward, heads, "
            "encoder_kernels, decoder_kernels, dropout, attention_dropout, tap_dropout, "
            "label_smoothing");
  EXPECT_EQ(RefusalOf("[translator]\nwidth = 0\n"),
            "net.toml:2:9: 'width': expected a whole number from 1 to 65536");
  EXPECT_EQ(RefusalOf("[translator]\nwidth = 6.5\n"),
            "net.toml:2:9: 'width': expected a whole number from 1 to 65536");
  EXPECT_EQ(RefusalOf("[translator]\ndropout = 1\n"),
            "net.toml:2:11: 'dropout': expected a number from 0 to less than 1");
  EXPECT_THAT(RefusalOf("[translator]\ndropout = nan\n"), HasSubstr("net.toml:2:11: 'dropout'"));
  EXPECT_THAT(RefusalOf("[translator]\nencoder_kernels = [3, 1]\n"),
              HasSubstr("'encoder_kernels': expected a whole number from 2 to 1024"));
  EXPECT_THAT(RefusalOf("[translator]\nencoder_kernels = []\n"), HasSubstr("expected a list"));
  EXPECT_THAT(RefusalOf("[translator]\nencoder_kernels = 3\n"), HasSubstr("expected a list"));
  EXPECT_THAT(RefusalOf("[translator]\nencoder_kernels = [3]\n"),
              HasSubstr("net.toml:1:1: [translator] has no 'decoder_kernels'"));
  EXPECT_THAT(RefusalOf("translator = 3\n"), HasSubstr("expected a table"));
  EXPECT_THAT(RefusalOf(std::string(kSmall) + "[input]\nheight = 3\n"),
              HasSubstr("unknown key \"input\""));
  EXPECT_THAT(RefusalOf("[input]\nheight = 3\n"), HasSubstr("net.toml:1:1: no [translator]"));
  EXPECT_THAT(RefusalOf("[translator"), HasSubstr("net.toml:1:"));
}

TEST(ParseTranslator, NoFileOfImages) {
  const auto model = ParseModelFile(kSmall, "net.toml");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message,
            "net.toml:1:2: [translator] describes a network for text, the data are images");
}

}  // namespace
}  // namespace thimble
