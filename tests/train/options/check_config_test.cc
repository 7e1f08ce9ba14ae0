// CheckConfig of options.h.
#include <gtest/gtest.h>

#include "thimble/train/options/options.h"

namespace thimble {
namespace {

std::string CheckRefusal(const TrainConfig& config) {
  const Result<void> result = CheckConfig(config);
  if (result.ok()) return "";
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  return result.error().message;
}

TEST(CheckConfig, TakesTheDefaultsAndTheBorders) {
  EXPECT_EQ(CheckRefusal({}), "");
  TrainConfig config;
  config.batch = 1;
  config.microbatch = 1;
  config.bn_group = 1;
  config.threads = 1024;
  config.prefetch = 1024;
  config.scratch_bytes = 16 << 10;
  config.optimizer = {.momentum = 0.999, .nesterov = true};
  config.augment = "crop-flip";
  config.schedule = "steps:1:0";
  config.out = "größe \n";
  EXPECT_EQ(CheckRefusal(config), "");
  config.optimizer = {.name = "adam", .beta1 = 0, .beta2 = 0.9999, .epsilon = 1e-30};
  config.schedule = "inverse-sqrt:1e-7";
  EXPECT_EQ(CheckRefusal(config), "");
}

TEST(CheckConfig, NamesWhatIsWrong) {
  const auto with = [](auto change) {
    TrainConfig config;
    change(config);
    return CheckRefusal(config);
  };
  EXPECT_EQ(with([](auto& c) { c.batch = 0; }), "--batch 0: must be at least 1");
  EXPECT_EQ(with([](auto& c) { c.microbatch = 101; }),
            "--microbatch 101: must be from 1 to the batch size, 100");
  EXPECT_EQ(with([](auto& c) { c.microbatch = -1; }),
            "--microbatch -1: must be from 1 to the batch size, 100");
  EXPECT_EQ(with([](auto& c) { c.bn_group = 101; }),
            "--bn-group 101: must be from 0 to the batch size, 100");
  EXPECT_EQ(with([](auto& c) { c.bn_group = -1; }),
            "--bn-group -1: must be from 0 to the batch size, 100");
  EXPECT_EQ(with([](auto& c) { c.threads = 1025; }), "--threads 1025: must be at most 1024");
  EXPECT_EQ(with([](auto& c) { c.prefetch = 1025; }), "--prefetch 1025: must be at most 1024");
  EXPECT_EQ(with([](auto& c) { c.scratch_bytes = 16383; }),
            "--scratch 16383: must be at least 16384 bytes per thread");
  EXPECT_EQ(with([](auto& c) { c.optimizer.momentum = 1; }), "--momentum 1: must be less than 1");
  EXPECT_EQ(with([](auto& c) { c.optimizer = {.momentum = 0, .nesterov = true}; }),
            "--nesterov requires --momentum above 0");
  EXPECT_EQ(with([](auto& c) { c.optimizer.beta1 = 1; }), "--adam-beta1 1: must be less than 1");
  EXPECT_EQ(with([](auto& c) { c.optimizer.beta2 = 2; }), "--adam-beta2 2: must be less than 1");
  EXPECT_EQ(with([](auto& c) { c.optimizer.epsilon = 0; }), "--adam-epsilon 0: must be above 0");
  EXPECT_EQ(with([](auto& c) { c.optimizer.name = "adagrad"; }),
            "--optimizer adagrad: expected sgd or adam");
  EXPECT_EQ(with([](auto& c) { c.optimizer = {.name = "adam", .nesterov = true}; }),
            "--nesterov: only with --optimizer sgd, not adam");
  EXPECT_EQ(with([](auto& c) { c.augment = "flip"; }),
            "--augment flip: expected auto, none or crop-flip");
  EXPECT_EQ(with([](auto& c) { c.device = "gpu"; }), "--device gpu: expected cpu or cuda");
  EXPECT_EQ(with([](auto& c) { c.math = "fp16"; }), "--math fp16: expected auto, tf32 or fp32");
  EXPECT_EQ(with([](auto& c) { c.math = "tf32"; }),
            "--math tf32: only with --device cuda; the CPU computes in fp32");
  EXPECT_EQ(with([](auto& c) {
              c.device = "cuda";
              c.conv = "winograd";
            }),
            "--conv winograd: only with --device cpu");
  EXPECT_EQ(with([](auto& c) { c.schedule = "linear"; }).find("--schedule linear: expected"), 0U);
  EXPECT_EQ(with([](auto& c) { c.out = "\xff"; }), "--out: expected UTF-8 text");
  EXPECT_EQ(with([](auto& c) { c.without = {"\xc3"}; }), "--without: expected UTF-8 text");
}

}  // namespace
}  // namespace thimble
