#include "thimble/train/options/usual_settings.h"

#include <gtest/gtest.h>

#include "thimble/train/options/options.h"

namespace thimble {
namespace {

TrainConfig Given(const std::map<std::string, std::string>& options) {
  TrainConfig config;
  for (const auto& [name, value] : options) {
    EXPECT_TRUE(FindOption(name)->set(config, value).ok()) << name;
  }
  return config;
}

TEST(IsTranslation, ByDataThenByModel) {
  EXPECT_FALSE(IsTranslation({}));
  EXPECT_TRUE(IsTranslation(Given({{"data", "numbers"}})));
  EXPECT_TRUE(IsTranslation(Given({{"data", "bitext:DIR"}})));
  EXPECT_TRUE(IsTranslation(Given({{"model", "dynamicconv-iwslt"}})));
  EXPECT_FALSE(IsTranslation(Given({{"model", "dynamicconv-iwslt"}, {"data", "shapes"}})));
}

TEST(UsualSettings, TranslationHasTheRecipeOfIwslt) {
  const TrainConfig config = UsualSettings(Given({{"model", "dynamicconv-iwslt"}}));
  EXPECT_EQ(config.batch, 4000);
  EXPECT_EQ(config.optimizer.name, "adam");
  EXPECT_EQ(config.optimizer.beta2, 0.98);
  EXPECT_EQ(config.learning_rate, 5e-4);
  EXPECT_EQ(config.warmup_steps, 4000);
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(UsualSettings, TheSmallTranslatorLearnsFaster) {
  const TrainConfig config = UsualSettings(Given({{"data", "numbers"}}));
  EXPECT_EQ(config.model, "dynamicconv-tiny");
  EXPECT_EQ(config.learning_rate, 3e-3);
  EXPECT_EQ(config.warmup_steps, 200);
  const TrainConfig named = UsualSettings(Given({{"model", "dynamicconv-tiny:dropout=0"}}));
  EXPECT_EQ(named.learning_rate, 3e-3);
}

TEST(UsualSettings, AdamHasASmallRate) {
  EXPECT_EQ(UsualSettings(Given({{"optimizer", "adam"}})).learning_rate, 1e-3);
  EXPECT_EQ(UsualSettings({}).learning_rate, TrainConfig{}.learning_rate);
}

}  // namespace
}  // namespace thimble
