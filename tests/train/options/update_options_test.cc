#include "thimble/train/options/update_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using testing::HasSubstr;

double InitialScale(const std::string& precision, const std::string& store = "") {
  TrainConfig config;
  config.levers["precision"] = precision;
  config.levers["store"] = store;
  return UpdateSpecOf(config).value().loss_scale.initial;
}

TEST(UpdateOptions, TheLossIsScaledWhereGradientsAreFp16) {
  EXPECT_EQ(InitialScale("fp32"), 0);
  EXPECT_EQ(InitialScale("bf16"), 0);
  EXPECT_GT(InitialScale("fp16"), 1);
  EXPECT_GT(InitialScale("mixed16"), 1);
  EXPECT_EQ(InitialScale("fp16", "gradients=bf16,activation-gradients=bf16"), 0);
  EXPECT_GT(InitialScale("fp32", "gradients=fp16"), 1);
}

TEST(UpdateOptions, SettingsReachTheUpdate) {
  TrainConfig config;
  config.clip = 0.5;
  config.seed = 17;
  config.loss_scale = "256";
  config.loss_scale_interval = 3;
  const UpdateSpec update = UpdateSpecOf(config).value();
  EXPECT_EQ(update.clip, 0.5);
  EXPECT_EQ(update.seed, 17U);
  EXPECT_EQ(update.loss_scale.initial, 256);
  EXPECT_EQ(update.loss_scale.interval, 3);
  EXPECT_TRUE(update.checks_gradients());
  config.loss_scale = "none";
  config.clip = 0;
  EXPECT_FALSE(UpdateSpecOf(config).value().checks_gradients());
}

TEST(UpdateOptions, WrongScales) {
  TrainConfig config;
  for (const char* scale : {"0", "-2", "nan", "inf", "", "2x"}) {
    config.loss_scale = scale;
    const auto update = UpdateSpecOf(config);
    ASSERT_FALSE(update.ok()) << scale;
    EXPECT_THAT(update.error().message, HasSubstr("expected auto, none or a number above 0"));
  }
}

TEST(StorageTypesOf, StoreComesOnTopOfPrecision) {
  TrainConfig config;
  config.levers["precision"] = "fp16";
  config.levers["store"] = "optimizer=q8";
  const StorageTypes types = StorageTypesOf(config).value();
  EXPECT_EQ(types[StoredCategory::kOptimizer], DType::kQ8);
  EXPECT_EQ(types[StoredCategory::kModel], DType::kF16);
}

}  // namespace
}  // namespace thimble
