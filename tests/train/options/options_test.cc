#include "thimble/train/options/options.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <thread>

namespace thimble {
namespace {

Result<void> Set(TrainConfig& config, const char* name, const char* text) {
  return FindOption(name)->set(config, text);
}

// The error for a value, "" if it is accepted. A rejected value must change nothing.
std::string Refusal(const char* name, const char* text) {
  TrainConfig config;
  const Result<void> result = Set(config, name, text);
  if (result.ok()) return "";
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(ToToml(config), ToToml({}));
  return result.error().message;
}

TEST(Options, NamesDifferAndEachHasHelp) {
  std::set<std::string> names;
  for (const Option& option : TrainOptions()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.group.empty()) << option.name;
    EXPECT_EQ(option.value.empty(), option.kind == OptionKind::kSwitch) << option.name;
    for (const char c : option.help + option.value)
      EXPECT_TRUE(c >= ' ' && c <= '~') << option.name;
    EXPECT_EQ(FindOption(option.name), &option);
  }
  EXPECT_EQ(FindOption("no-such-option"), nullptr);
  EXPECT_EQ(FindOption(""), nullptr);
  EXPECT_EQ(FindOption("--batch"), nullptr);
}

TEST(Options, GetGivesWhatSetTakes) {
  for (const Option& option : TrainOptions()) {
    TrainConfig config;
    const std::string before = option.get(config);
    ASSERT_TRUE(option.set(config, before).ok()) << option.name << " " << before;
    EXPECT_EQ(option.get(config), before) << option.name;
  }
}

TEST(Options, ValuesArriveInTheirFields) {
  TrainConfig config;
  ASSERT_TRUE(Set(config, "batch", "7").ok());
  ASSERT_TRUE(Set(config, "lr", "1e-3").ok());
  ASSERT_TRUE(Set(config, "nesterov", "true").ok());
  ASSERT_TRUE(Set(config, "budget", "8MB").ok());
  ASSERT_TRUE(Set(config, "seed", "9223372036854775807").ok());
  ASSERT_TRUE(Set(config, "out", "a b=c").ok());
  ASSERT_TRUE(Set(config, "without", "order,placement").ok());
  EXPECT_EQ(config.batch, 7);
  EXPECT_EQ(config.learning_rate, 1e-3);
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.budget_bytes, 8'000'000);
  EXPECT_EQ(config.seed, uint64_t{9223372036854775807});
  EXPECT_EQ(config.out, "a b=c");
  EXPECT_EQ(config.without, (std::set<std::string>{"order", "placement"}));
  ASSERT_TRUE(Set(config, "without", "").ok());
  EXPECT_TRUE(config.without.empty());
}

TEST(Options, NumbersComeBackBitForBit) {
  for (const double value : {0.1, 5e-4, 1.0 / 3, 1e-300, 1e300, 4.9e-324, 0.0}) {
    TrainConfig config;
    config.learning_rate = value;
    const std::string text = FindOption("lr")->get(config);
    config.learning_rate = -1;
    ASSERT_TRUE(Set(config, "lr", text.c_str()).ok()) << text;
    EXPECT_EQ(config.learning_rate, value);
  }
}

TEST(Options, WrongIntegers) {
  for (const char* text :
       {"0", "-1", "abc", "", "1.5", "7x", " 7", "+7", "0x10", "9223372036854775808"}) {
    EXPECT_EQ(Refusal("batch", text),
              std::string("--batch ") + text + ": expected a whole number, at least 1");
  }
  EXPECT_EQ(Refusal("epochs", "-1"), "--epochs -1: expected a whole number, at least 0");
  EXPECT_EQ(Refusal("seed", "-1"), "--seed -1: expected a whole number, at least 0");
  EXPECT_EQ(Refusal("bn-group", "-1"), "--bn-group -1: expected a whole number, at least 0");
  EXPECT_EQ(Refusal("log-every", "0"), "--log-every 0: expected a whole number, at least 1");
}

TEST(Options, WrongNumbers) {
  for (const char* text : {"-0.1", "abc", "", "1e999", "inf", "nan", "0,1", "1 "}) {
    EXPECT_EQ(Refusal("lr", text), std::string("--lr ") + text + ": expected a number, at least 0");
  }
}

TEST(Options, WrongSizesAndSwitches) {
  for (const char* text : {"", "eight", "8XB", "-1", "1e30", "nan", "inf"}) {
    EXPECT_EQ(Refusal("budget", text).find("--budget: '" + std::string(text) + "' is not a size"),
              0U);
  }
  for (const char* text : {"", "yes", "1", "True"}) {
    EXPECT_EQ(Refusal("resume", text),
              std::string("--resume ") + text + ": expected true or false");
  }
}

TEST(Options, AMicrobatchIsChosenOrNot) {
  for (const char* text : {"0", "-5", "1.5", "ten"}) {
    EXPECT_EQ(Refusal("microbatch", text),
              std::string("--microbatch ") + text + ": expected a whole number, at least 1");
  }
  const Option& option = *FindOption("microbatch");
  EXPECT_TRUE(option.decides_results);
  TrainConfig config;
  EXPECT_EQ(option.get(config), "");
  ASSERT_TRUE(option.set(config, "10").ok());
  EXPECT_EQ(config.microbatch, 10);
  EXPECT_EQ(option.get(config), "10");
  // One part means the whole batch.
  config.batch = 10;
  EXPECT_EQ(option.get(config), "");
  ASSERT_TRUE(option.set(config, "").ok());
  EXPECT_EQ(config.microbatch, 0);
}

TEST(FirstDifference, OnlyWhatDecidesResults) {
  TrainConfig saved;
  TrainConfig now;
  now.threads = 3;
  now.epochs = 9;
  now.out = "elsewhere";
  now.resume = true;
  now.scratch_bytes = 1 << 16;
  now.prefetch = 0;
  now.device = "cuda";
  now.math = "fp32";
  EXPECT_EQ(FirstDifference(saved, now), "");
}

TEST(FirstDifference, NamesTheOptionAndBothValues) {
  TrainConfig now;
  now.batch = 32;
  EXPECT_EQ(FirstDifference({}, now), "--batch was '100' and is now '32'");
  now = {};
  now.microbatch = 10;
  EXPECT_EQ(FirstDifference({}, now), "--microbatch was '' and is now '10'");
  now = {};
  now.optimizer.nesterov = true;
  EXPECT_EQ(FirstDifference({}, now), "--nesterov was 'false' and is now 'true'");
  now = {};
  now.seed = 2;
  now.learning_rate = 0.2;  // the first one in the table is reported
  EXPECT_EQ(FirstDifference({}, now), "--lr was '0.1' and is now '0.2'");
}

TEST(ResolvedMath, Tf32OnlyWhereTheDeviceHasIt) {
  TrainConfig config;
  EXPECT_EQ(DeviceOf(config), DeviceKind::kCpu);
  EXPECT_EQ(ResolvedMath(config), "fp32");
  config.device = "cuda";
  EXPECT_EQ(DeviceOf(config), DeviceKind::kCuda);
  EXPECT_EQ(ResolvedMath(config), "tf32");
  EXPECT_TRUE(CheckConfig(config).ok());
  config.math = "fp32";
  EXPECT_EQ(ResolvedMath(config), "fp32");
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(ResolvedThreads, AsSaidOrAsTheMachineHas) {
  TrainConfig config;
  config.threads = 3;
  EXPECT_EQ(ResolvedThreads(config), 3);
  config.threads = 0;
  EXPECT_EQ(ResolvedThreads(config),
            std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(Options, RememberWhetherDataWasGiven) {
  TrainConfig config;
  EXPECT_FALSE(config.data_given);
  ASSERT_TRUE(Set(config, "model", "wrn-10-1").ok());
  EXPECT_FALSE(config.data_given);
  ASSERT_TRUE(Set(config, "data", "shapes").ok());  // also where it is the default
  EXPECT_TRUE(config.data_given);
  EXPECT_EQ(config.data, "shapes");
}

}  // namespace
}  // namespace thimble
