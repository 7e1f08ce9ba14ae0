#include "thimble/train/command_text.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(CommandText, DefaultsNeedNoOption) { EXPECT_EQ(CommandOf({}), "thimble train"); }

TEST(CommandText, HasWhatDiffersFromTheDefaults) {
  TrainConfig config;
  config.model = "wrn-10-1";
  config.data = "shapes:10,6";
  config.batch = 4;
  config.learning_rate = 0.05;
  config.optimizer.nesterov = true;
  EXPECT_EQ(CommandOf(config),
            "thimble train --model wrn-10-1 --data shapes:10,6 --batch 4 --lr 0.05 --nesterov");
}

TEST(CommandText, RepeatsARunThatWasResumed) {
  TrainConfig config;
  config.resume = true;
  config.out = "runs/x";
  EXPECT_EQ(CommandOf(config), "thimble train --out runs/x");
}

TEST(CommandText, QuotesWhatAShellWouldRead) {
  TrainConfig config;
  config.out = "my runs/$(x)";
  EXPECT_EQ(CommandOf(config), "thimble train --out 'my runs/$(x)'");
  config.out = "it's";
  EXPECT_EQ(CommandOf(config), "thimble train --out 'it'\\''s'");
  config.out = "~/run";
  EXPECT_EQ(CommandOf(config), "thimble train --out '~/run'");
  config.out = {};
  config.simd = "";
  EXPECT_EQ(CommandOf(config), "thimble train --simd ''");
}

}  // namespace
}  // namespace thimble
