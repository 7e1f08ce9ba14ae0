#include "thimble/train/run_folder/run_state.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "thimble/base/json.h"

namespace thimble {
namespace {

RunState Filled() {
  return {.step = 12,
          .loss_sum = 1.0 / 3,
          .correct = 5,
          .samples = 9,
          .train_loss = 0.1,
          .train_accuracy = 2.0 / 7,
          .test_loss = 1e-300,
          .test_accuracy = 0.3,
          .bleu = 34.5,
          .best_accuracy = 0.4,
          .best_epoch = 4,
          .seconds = 1e9 + 1e-7,
          .metrics_bytes = std::numeric_limits<int64_t>::max(),
          .metrics_checksum = std::numeric_limits<uint64_t>::max()};
}

// The error message for a state with `name` replaced by `value`.
std::string RefusalWith(const char* name, const Json& value) {
  Json json = ParseJson(ToJson(Filled())).value();
  json[name] = value;
  const auto state = RunStateFromJson(json.Dump());
  if (state.ok()) return "was accepted";
  EXPECT_EQ(state.error().kind, ErrorKind::kBadInput);
  return state.error().message;
}

TEST(RunState, ComesBack) {
  EXPECT_EQ(*RunStateFromJson(ToJson(RunState())), RunState());
  EXPECT_EQ(*RunStateFromJson(ToJson(Filled())), Filled());
}

TEST(RunState, DoublesComeBackBitForBit) {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.0,
                                -0.0,
                                std::numeric_limits<double>::denorm_min(),
                                std::numeric_limits<double>::min(),
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::lowest(),
                                std::nextafter(1.0, 2.0),
                                1e22,
                                9007199254740993.0};
  while (values.size() < 2000) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    RunState state;
    state.loss_sum = value;
    const auto back = RunStateFromJson(ToJson(state));
    ASSERT_TRUE(back.ok()) << value;
    EXPECT_EQ(std::bit_cast<uint64_t>(back->loss_sum), std::bit_cast<uint64_t>(value)) << value;
  }
}

TEST(RunState, NotAnObject) {
  for (const char* text : {"", "{", "[]", "null", "12", "{\"step\": 1,}"}) {
    const auto state = RunStateFromJson(text);
    ASSERT_FALSE(state.ok()) << text;
    EXPECT_EQ(state.error().message, "progress is not a JSON object");
  }
}

TEST(RunState, MissingMember) {
  Json json = ParseJson(ToJson(Filled())).value();
  for (const auto& [name, value] : json.members()) {
    Json without = json;
    without.erase(name);
    const auto state = RunStateFromJson(without.Dump());
    ASSERT_FALSE(state.ok()) << name;
    EXPECT_EQ(state.error().message, "progress: '" + name + "' is missing or invalid");
  }
}

TEST(RunState, ImpossibleNumbers) {
  for (const Json& value : {Json(-1), Json(1.5), Json("1"), Json(nullptr), Json(1e300),
                            Json(std::numeric_limits<uint64_t>::max())}) {
    EXPECT_EQ(RefusalWith("step", value), "progress: 'step' is missing or invalid") << value;
  }
  EXPECT_EQ(RefusalWith("samples", -1), "progress: 'samples' is missing or invalid");
  EXPECT_EQ(RefusalWith("seconds", nullptr), "progress: 'seconds' is missing or invalid");
  EXPECT_EQ(RefusalWith("test_loss", nullptr), "was accepted");  // not evaluated yet
  EXPECT_EQ(RefusalWith("metrics_checksum", -1),
            "progress: 'metrics_checksum' is missing or invalid");
  EXPECT_EQ(RefusalWith("test_loss", "0.5"), "progress: 'test_loss' is missing or invalid");
}

TEST(RunState, MembersOfLaterVersionsAreIgnored) {
  EXPECT_EQ(RefusalWith("new_member", "x"), "was accepted");
}

}  // namespace
}  // namespace thimble
