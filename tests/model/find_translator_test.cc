#include <gtest/gtest.h>

#include "tests/support/test_paths.h"
#include "thimble/model/translator.h"

namespace thimble {
namespace {

TEST(FindTranslator, BuiltInOnesWithOptions) {
  EXPECT_TRUE(IsTranslator("dynamicconv-iwslt"));
  EXPECT_TRUE(IsTranslator("dynamicconv-tiny:whatever"));
  EXPECT_FALSE(IsTranslator("wrn-28-2"));
  EXPECT_FALSE(IsTranslator("dynamicconv-tiny2"));
  const auto plain = FindTranslator("dynamicconv-iwslt", 30, 20);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->source_words, 30);
  EXPECT_EQ(plain->target_words, 20);
  EXPECT_EQ(plain->dropout, 0.3);
  EXPECT_EQ(plain->attention_dropout, 0.1);
  const auto changed = FindTranslator("dynamicconv-iwslt:dropout=0,tap-dropout=0.5", 30, 20);
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->dropout, 0);
  EXPECT_EQ(changed->attention_dropout, 0.1);
  EXPECT_EQ(changed->tap_dropout, 0.5);
}

TEST(FindTranslator, WrongNames) {
  EXPECT_EQ(FindTranslator("wrn-28-2", 30, 20).error().message,
            "--model \"wrn-28-2\": is no network for translation; there are dynamicconv-iwslt and "
            "dynamicconv-tiny");
  EXPECT_FALSE(FindTranslator("dynamicconv-tiny:group-norm=8", 30, 20).ok());
  EXPECT_FALSE(FindTranslator("dynamicconv-tiny:dropout=1", 30, 20).ok());
}

TEST(FindTranslator, ModelFiles) {
  const std::string path = ExamplesFolder() + "/models/dynamicconv-iwslt.toml";
  EXPECT_TRUE(IsTranslator(path));
  EXPECT_FALSE(IsTranslator(ExamplesFolder() + "/models/cnn.toml"));
  EXPECT_FALSE(IsTranslator("nowhere.toml"));
  const auto spec = FindTranslator(path, 30, 20);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->source_words, 30);
  TranslatorSpec expected = FindTranslator("dynamicconv-iwslt", 30, 20).value();
  expected.text = spec->text;
  EXPECT_EQ(*spec, expected);
  EXPECT_FALSE(FindTranslator("nowhere.toml", 30, 20).ok());
}

}  // namespace
}  // namespace thimble
