#include "thimble/train/options/command_text.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

// What every command has.
constexpr const char* kStart = "thimble train --model wrn-28-2 --data shapes";

TEST(CommandText, AlwaysSaysWhatIsTrained) { EXPECT_EQ(CommandOf({}), kStart); }

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
  config.extend = true;
  config.out = "runs/x";
  EXPECT_EQ(CommandOf(config), std::string(kStart) + " --out runs/x");
  config.resume = config.extend = false;
  config.overwrite = true;
  EXPECT_EQ(CommandOf(config), std::string(kStart) + " --out runs/x");
}

TEST(CommandText, ContinuesARunInItsFolder) {
  TrainConfig config;
  config.batch = 7;
  config.overwrite = true;
  EXPECT_EQ(ContinueCommand(config, "runs/a b"),
            std::string(kStart) + " --batch 7 --out 'runs/a b' --resume");
}

TEST(CommandText, QuotesWhatAShellWouldRead) {
  TrainConfig config;
  config.out = "my runs/$(x)";
  EXPECT_EQ(CommandOf(config), std::string(kStart) + " --out 'my runs/$(x)'");
  config.out = "it's";
  EXPECT_EQ(CommandOf(config), std::string(kStart) + " --out 'it'\\''s'");
  config.out = "~/run";
  EXPECT_EQ(CommandOf(config), std::string(kStart) + " --out '~/run'");
  config.out = {};
  config.simd = "";
  EXPECT_EQ(CommandOf(config), std::string(kStart) + " --simd ''");
}

}  // namespace
}  // namespace thimble
