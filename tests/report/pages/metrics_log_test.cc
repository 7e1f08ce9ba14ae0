#include "thimble/report/pages/metrics_log.h"

#include <gtest/gtest.h>

#include "thimble/train/run_folder/metrics.h"

namespace thimble {
namespace {

using Points = std::vector<CurvePoint>;

std::string Refusal(const std::string& text) {
  const auto log = MetricsFromLines(text);
  if (log.ok()) return "";
  EXPECT_EQ(log.error().kind, ErrorKind::kBadInput);
  return log.error().message;
}

TEST(MetricsLog, HasWhatTheTrainerWrote) {
  EpochReport report{.epoch = 1, .train_loss = 1.5, .train_accuracy = 0.25};
  report.test = {.loss = 1.25, .accuracy = 0.5, .count = 4};
  report.seconds = 12.5;
  const std::string text = StepMetrics({1, 2.5, 0.1}) + "\n" + StepMetrics({2, 2.25, 0.05}) + "\n" +
                           EpochMetrics(report, 2) + "\n";
  const auto log = MetricsFromLines(text);
  ASSERT_TRUE(log.ok()) << log.error().message;
  EXPECT_EQ(log->loss, (Points{{1, 2.5}, {2, 2.25}}));
  EXPECT_EQ(log->learning_rate, (Points{{1, 0.1}, {2, 0.05}}));
  EXPECT_EQ(log->train_loss, (Points{{2, 1.5}}));
  EXPECT_EQ(log->test_accuracy, (Points{{2, 0.5}}));
  EXPECT_TRUE(log->validation_loss.empty());
  EXPECT_TRUE(log->loss_scale.empty());
  EXPECT_EQ(log->seconds, 12.5);
  EXPECT_FALSE(log->last_line_torn);
}

TEST(MetricsLog, LossScaleWhereThereIsOne) {
  const auto log = MetricsFromLines("{\"step\":1,\"loss\":2,\"loss_scale\":65536}\n");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->loss_scale, (Points{{1, 65536}}));
  EXPECT_TRUE(log->learning_rate.empty());
}

TEST(MetricsLog, NumbersThatWereNoneHaveNoPoint) {
  const auto log = MetricsFromLines("{\"step\":1,\"loss\":null,\"lr\":0.1}\n");
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE(log->loss.empty());
  EXPECT_EQ(log->learning_rate.size(), 1U);
}

TEST(MetricsLog, AnEmptyFileIsARunThatJustBegan) {
  const auto log = MetricsFromLines("");
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE(log->loss.empty());
  EXPECT_FALSE(log->last_line_torn);
}

TEST(MetricsLog, ALineWithoutEndIsLeftOut) {
  const auto log = MetricsFromLines("{\"step\":1,\"loss\":2}\n{\"step\":2,\"lo");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->loss.size(), 1U);
  EXPECT_TRUE(log->last_line_torn);
}

TEST(MetricsLog, WrongLinesAreNamed) {
  const std::string good = "{\"step\":3,\"loss\":2}\n";
  EXPECT_EQ(Refusal(good + "\n"), "line 2: expected a JSON object");
  EXPECT_EQ(Refusal(good + "{\"step\":4,\n"), "line 2: expected a JSON object");
  EXPECT_EQ(Refusal("[1]\n"), "line 1: expected a JSON object");
  EXPECT_EQ(Refusal(std::string(65537, '[') + "\n"), "line 1: expected at most 65536 bytes");
  EXPECT_EQ(Refusal("{\"loss\":2}\n"), "line 1: step: expected a whole number, 0 or more");
  EXPECT_EQ(Refusal("{\"step\":-1}\n"), "line 1: step: expected a whole number, 0 or more");
  EXPECT_EQ(Refusal("{\"step\":1e300}\n"), "line 1: step: expected a whole number, 0 or more");
  EXPECT_EQ(Refusal("{\"step\":18446744073709551615}\n"),
            "line 1: step: expected a whole number, 0 or more");
  EXPECT_EQ(Refusal(good + "{\"step\":2,\"loss\":2}\n"), "line 2: step: expected 3 or more, got 2");
  EXPECT_EQ(Refusal("{\"step\":1,\"loss\":\"2\"}\n"), "line 1: loss: expected a number");
  EXPECT_EQ(Refusal("{\"epoch\":1,\"step\":1,\"test_accuracy\":[]}\n"),
            "line 1: test_accuracy: expected a number");
  EXPECT_EQ(Refusal("{\"step\":1,\"loss\":\"\xff\"}\n"), "line 1: expected a JSON object");
}

TEST(MetricsLog, RewiringsOfSparseWeights) {
  const auto log = MetricsFromLines(
      "{\"step\":10,\"moved_weights\":5,\"threshold\":0.25,\"active_weights\":[7,9]}\n"
      "{\"step\":20,\"moved_weights\":6,\"threshold\":0.5,\"active_weights\":[8,8]}\n");
  ASSERT_TRUE(log.ok()) << log.error().message;
  EXPECT_EQ(log->moved_weights, (std::vector<CurvePoint>{{10, 5}, {20, 6}}));
  EXPECT_EQ(log->threshold, (std::vector<CurvePoint>{{10, 0.25}, {20, 0.5}}));
  ASSERT_EQ(log->active_weights.size(), 2U);
  EXPECT_EQ(log->active_weights[1], (std::vector<CurvePoint>{{10, 9}, {20, 8}}));
}

TEST(MetricsLog, RefusesWrongListsOfActiveWeights) {
  EXPECT_EQ(Refusal("{\"step\":1,\"active_weights\":7}\n"),
            "line 1: active_weights: expected a list");
  EXPECT_EQ(Refusal("{\"step\":1,\"active_weights\":[\"many\"]}\n"),
            "line 1: active_weights: expected numbers");
  EXPECT_EQ(Refusal("{\"step\":1,\"active_weights\":[7,9]}\n{\"step\":2,\"active_weights\":[7]}\n"),
            "line 2: active_weights: expected 2 numbers, got 1");
}

}  // namespace
}  // namespace thimble
