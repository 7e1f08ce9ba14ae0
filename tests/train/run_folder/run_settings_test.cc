#include "thimble/train/run_folder/run_settings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "thimble/base/sealed_text.h"

namespace thimble {
namespace {

RunSettings Settings(const TrainConfig& config = {}, int64_t steps = 6) {
  return SettingsOf(config, "", "shapes, 4 training and 2 test images", steps);
}

std::string Refusal(const RunSettings& saved, const RunSettings& now, bool extend = false) {
  const auto same = CheckSameSettings(saved, now, extend);
  if (same.ok()) return "";
  EXPECT_EQ(same.error().kind, ErrorKind::kBadInput);
  return same.error().message;
}

TEST(RunSettings, OnlyWhatDecidesResults) {
  TrainConfig other;
  other.threads = 7;
  other.out = "elsewhere";
  other.recompute = "optimal";
  other.data = "cifar10:/moved";  // identified by content, not by path
  EXPECT_EQ(Settings(), Settings(other));
  other.learning_rate = 0.25;
  EXPECT_EQ(Refusal(Settings(), Settings(other)),
            "this run was started with different settings: --lr was '0.1' and is now '0.25'");
}

TEST(RunSettings, DataCountsByWhatIsInIt) {
  const RunSettings saved = SettingsOf({}, "", "cifar10, crc64:1", 6);
  EXPECT_EQ(
      Refusal(saved, SettingsOf({}, "", "cifar10, crc64:2", 6)),
      "this run was started with different settings: --data was 'cifar10, crc64:1' and is now "
      "'cifar10, crc64:2'");
}

TEST(RunSettings, AModelFileCountsByItsText) {
  TrainConfig config;
  config.model = "a.toml";
  TrainConfig moved;
  moved.model = "b.toml";
  const RunSettings saved = SettingsOf(config, "x = 1", "", 6);
  EXPECT_EQ(Refusal(saved, SettingsOf(moved, "x = 1", "", 6)), "");
  EXPECT_EQ(Refusal(saved, SettingsOf(moved, SealToml("x = 1"), "", 6)), "");
  EXPECT_NE(Refusal(saved, SettingsOf(config, "x = 2", "", 6)), "");
}

TEST(RunSettings, ARunBecomesLongerOnlyWhenAsked) {
  EXPECT_EQ(Refusal(Settings({}, 6), Settings({}, 9)),
            "this run has 6 steps, but 9 were requested: add --extend to make it longer");
  EXPECT_EQ(Refusal(Settings({}, 6), Settings({}, 9), true), "");
  EXPECT_EQ(Refusal(Settings({}, 6), Settings({}, 6), true), "");
  for (const bool extend : {false, true}) {
    EXPECT_EQ(
        Refusal(Settings({}, 6), Settings({}, 3), extend),
        "this run has 6 steps, but 3 were requested: a run can be made longer, but not shorter");
  }
}

TEST(RunSettings, ASettingThatTheCheckpointDoesNotKnow) {
  RunSettings saved = Settings();
  saved.values.erase("batch");
  EXPECT_EQ(Refusal(saved, Settings()),
            "this run was started with different settings: --batch was '' and is now '100'");
}

TEST(RunSettings, LengthsAreCountedWithCare) {
  TrainConfig config;
  config.epochs = 3;
  EXPECT_EQ(*StepsOf(config, 10, 1), 30);
  config.steps = 7;
  EXPECT_EQ(*StepsOf(config, 10, 4), 7);
  config.steps = int64_t{1} << 53;
  EXPECT_TRUE(StepsOf(config, int64_t{1} << 40, 1).ok());
  EXPECT_FALSE(StepsOf(config, int64_t{1} << 40, 2).ok());
  EXPECT_FALSE(StepsOf(config, 1, 1).ok());  // too many epochs
  config.steps = 0;
  config.epochs = int64_t{1} << 62;
  EXPECT_FALSE(StepsOf(config, 4, 1).ok());
}

TEST(RunSettings, TellsWhatExtendingDoes) {
  const ScheduleSpan before{.num_steps = 10, .steps_per_epoch = 5};
  const ScheduleSpan after{.num_steps = 20, .steps_per_epoch = 5};
  EXPECT_EQ(
      DescribeExtension({}, 0.1, before, after, 10),
      "extending this run from 10 to 20 steps; the learning rate is the same as in one run of this "
      "length");
  EXPECT_EQ(DescribeExtension(*ParseSchedule("cosine"), 0.1, before, after, 5),
            "extending this run from 10 to 20 steps; the learning rate, which fell to 0 over 10 "
            "steps, now falls over 20: 0.08536 at step 6 instead of 0.05; this is not the same as "
            "one run of 20 steps");
}

TEST(RunSettings, ComeBack) {
  RunSettings settings = Settings();
  settings.values["odd"] = "größe \"x\"\n";
  EXPECT_EQ(*SettingsFromJson(ToJson(settings)), settings);
}

TEST(RunSettings, ErrorsAreOneShortLine) {
  for (const std::string& name : {std::string("a\\nb"), std::string(5000, 'x')}) {
    const auto settings =
        SettingsFromJson(fmt::format(R"({{"steps": 1, "values": {{"{}": 1}}}})", name));
    ASSERT_FALSE(settings.ok());
    EXPECT_EQ(settings.error().message.find('\n'), std::string::npos) << settings.error().message;
    EXPECT_LT(settings.error().message.size(), 200U) << settings.error().message;
  }
}

TEST(RunSettings, WrongTexts) {
  for (const char* text :
       {"", "[]", "{}", R"({"steps": 1})", R"({"values": {}})", R"({"steps": -1, "values": {}})",
        R"({"steps": "1", "values": {}})", R"({"steps": 1, "values": []})",
        R"({"steps": 1, "values": {"a": 1}})"}) {
    const auto settings = SettingsFromJson(text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_EQ(settings.error().kind, ErrorKind::kBadInput);
  }
}

}  // namespace
}  // namespace thimble
