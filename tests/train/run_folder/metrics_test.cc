#include "thimble/train/run_folder/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "thimble/base/json.h"
#include "thimble/base/sealed_text.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

TEST(Metrics, StepLine) {
  const std::string line = StepMetrics({.step = 7, .loss = 1.0 / 3, .learning_rate = 0.1});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Json json = ParseJson(line).value();
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["loss"].get<double>(), 1.0 / 3);
  EXPECT_EQ(json["lr"], 0.1);
  EXPECT_FALSE(json.contains("loss_scale"));
}

TEST(Metrics, StepLineOfAScaledLoss) {
  const Json json =
      ParseJson(StepMetrics({.step = 7, .loss_scale = 512, .skipped_updates = 3})).value();
  EXPECT_EQ(json["loss_scale"], 512);
  EXPECT_EQ(json["skipped_updates"], 3);
}

TEST(Metrics, EpochLineHasWhatWasEvaluated) {
  EpochReport report{.epoch = 2, .train_loss = 1.5, .train_accuracy = 0.25};
  Json json = ParseJson(EpochMetrics(report, 20)).value();
  EXPECT_EQ(json["epoch"], 2);
  EXPECT_EQ(json["step"], 20);
  EXPECT_EQ(json["train_loss"], 1.5);
  EXPECT_EQ(json["train_accuracy"], 0.25);
  EXPECT_FALSE(json.contains("test_loss"));
  EXPECT_FALSE(json.contains("validation_loss"));
  report.test = {.loss = 1, .accuracy = 0.5, .count = 4};
  report.validation = {.loss = 2, .accuracy = 0.75, .count = 4};
  json = ParseJson(EpochMetrics(report, 20)).value();
  EXPECT_EQ(json["test_accuracy"], 0.5);
  EXPECT_EQ(json["validation_loss"], 2);
}

TEST(Metrics, LinesStayJsonWhateverTheNumbers) {
  EXPECT_TRUE(ParseJson(StepMetrics({.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()}))
                  .value()["loss"]
                  .is_null());
}

TEST(Metrics, SummaryHasTheDocumentedKeys) {
  TrainSummary summary;
  summary.arena_bytes = 4096;
  summary.steps = 3;
  const Json json = ParseJson(SummaryJson(summary, {})).value();
  for (const char* key :
       {"arena_bytes", "planned_peak_bytes", "measured_peak_bytes", "process_peak_bytes", "steps",
        "examples_per_second", "train_loss", "test_accuracy", "config", "run_folder", "finished",
        "heap_calls_in_steps", "map_calls_in_steps", "arena_resident_bytes", "command",
        "version"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["arena_bytes"], 4096);
  EXPECT_EQ(json["steps"], 3);
}

TEST(Metrics, SummaryHoldsTheWholeConfigurationWithItsTypes) {
  TrainConfig config;
  config.out = "a \"b\"\n";
  config.learning_rate = 1e-7;
  const Json json = ParseJson(SummaryJson({}, config)).value()["config"];
  for (const Option& option : TrainOptions()) {
    ASSERT_TRUE(json.contains(option.name)) << option.name;
    const Json& value = json[option.name];
    EXPECT_EQ(value.is_string(), option.kind == OptionKind::kText) << option.name;
    EXPECT_EQ(value.is_boolean(), option.kind == OptionKind::kSwitch) << option.name;
  }
  EXPECT_EQ(json["out"], "a \"b\"\n");
  EXPECT_EQ(json["lr"].get<double>(), 1e-7);
}

TEST(Metrics, SummaryComesBack) {
  TrainSummary summary;
  summary.run_folder = "runs/\"x\"";
  summary.finished = true;
  summary.stop_signal = 15;
  summary.steps = 12;
  summary.num_steps = 20;
  summary.metrics_bytes = 5;
  summary.metrics_checksum = ~uint64_t{0};
  summary.test_accuracy = 1.0 / 3;
  summary.arena_bytes = int64_t{1} << 40;
  summary.device_memory.driver_bytes = 17;
  summary.threads = 2;
  summary.command = "thimble train";
  summary.version = "0.1.0";
  const std::string text = SummaryJson(summary, {});
  const auto read = SummaryFromJson(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(SummaryJson(*read, {}), text);
  EXPECT_EQ(read->json, text);
  EXPECT_EQ(read->device_memory.driver_bytes, 17);
}

TEST(Metrics, SummaryTellsNoAccuracyThatNobodyMeasured) {
  const Json json = ParseJson(SummaryJson({}, {})).value();
  for (const char* name : {"train_loss", "test_loss", "test_accuracy", "best_accuracy"}) {
    EXPECT_TRUE(json[name].is_null()) << name;
  }
  EXPECT_EQ(SummaryFromJson(json.Dump())->test_accuracy, std::nullopt);
}

TEST(Metrics, SummaryCarriesItsChecksum) {
  std::string text = SummaryJson({}, {});
  EXPECT_TRUE(CheckSeal(text).ok());
  text[text.find("\"steps\": 0") + 9] = '7';
  EXPECT_FALSE(CheckSeal(text).ok());
}

TEST(Metrics, SummaryOfOlderRunsHasNoCommand) {
  Json json = ParseJson(SummaryJson({}, {})).value();
  json.erase("command");
  json.erase("version");
  EXPECT_TRUE(SummaryFromJson(json.Dump()).ok());
  json["command"] = 1;
  EXPECT_EQ(SummaryFromJson(json.Dump()).error().message, "command: expected a string");
}

TEST(Metrics, WrongSummaries) {
  EXPECT_EQ(SummaryFromJson("").error().message, "is truncated or not JSON: byte 1 is unexpected");
  EXPECT_EQ(SummaryFromJson("[1]").error().message, "is not a JSON object");
  EXPECT_EQ(SummaryFromJson("{}").error().message, "run_folder: expected a string");
  const std::string good = SummaryJson({}, {});
  EXPECT_EQ(SummaryFromJson(good.substr(0, good.size() / 2)).error().message,
            fmt::format("is truncated or not JSON: byte {} is unexpected", good.size() / 2 + 1));
  const auto message_with = [&](const char* name, const Json& value) {
    Json json = ParseJson(good).value();
    json[name] = value;
    const auto read = SummaryFromJson(json.Dump());
    return read.ok() ? std::string() : read.error().message;
  };
  EXPECT_EQ(message_with("steps", -1), "steps: expected a whole number, 0 or more");
  EXPECT_EQ(message_with("steps", 1.5), "steps: expected a whole number, 0 or more");
  EXPECT_EQ(message_with("arena_bytes", uint64_t{1} << 63),
            "arena_bytes: expected a whole number, 0 or more");
  EXPECT_EQ(message_with("threads", int64_t{1} << 31),
            "threads: expected a whole number, 0 or more");
  EXPECT_EQ(message_with("train_loss", "x"), "train_loss: expected a number or null");
  EXPECT_EQ(message_with("seconds", nullptr), "seconds: expected a number");
  EXPECT_EQ(message_with("finished", 1), "finished: expected true or false");
}

}  // namespace
}  // namespace thimble
