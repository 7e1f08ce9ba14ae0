// Checks of every profile, on any device.
#pragma once

#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/base/json.h"

namespace thimble {

inline constexpr const char* kCategoryNames[] = {"model",       "gradients", "optimizer",
                                                 "activations", "transient", "data"};

// The same bytes planned and measured in each category; returns their sum.
inline int64_t ExpectSameBytes(const Json& row, const std::string& what) {
  int64_t sum = 0;
  for (const char* category : kCategoryNames) {
    EXPECT_EQ(row["planned"][category], row["measured"][category]) << what << " " << category;
    sum += row["measured"][category].get<int64_t>();
  }
  return sum;
}

// Planned = measured for all categories, layers, steps and holdings of `thimble profile --json`,
// and the numbers are consistent.
inline void ExpectMeasuredAsPlanned(const Json& profile, const std::string& command) {
  EXPECT_EQ(profile["agrees"], true) << command;
  EXPECT_EQ(profile["differences"], Json::EmptyArray()) << command;
  EXPECT_EQ(profile["arena_bytes"], profile["allocated_bytes"]) << command;
  EXPECT_EQ(profile["planned_peak_bytes"], profile["measured_peak_bytes"]) << command;
  EXPECT_EQ(profile["device_allocations_in_steps"], 0) << command;

  const auto& peak = profile["categories"];
  const int64_t at_peak = ExpectSameBytes(peak, command);
  EXPECT_EQ(peak["planned"]["gaps"], peak["measured"]["gaps"]) << command;

  ASSERT_FALSE(profile["layers"].empty()) << command;
  int64_t of_layers = 0;
  for (const auto& layer : profile["layers"]) {
    of_layers += ExpectSameBytes(layer, command + ": layer " + layer["layer"].Dump());
  }
  EXPECT_EQ(of_layers, at_peak) << command;

  ASSERT_FALSE(profile["steps"].empty()) << command;
  const int64_t plan_arena = at_peak + peak["measured"]["gaps"].get<int64_t>();
  int64_t fullest = 0;
  double milliseconds = 0;
  for (const auto& step : profile["steps"]) {
    const int64_t bytes = ExpectSameBytes(step, command + ": a step of " + step["layer"].Dump());
    EXPECT_EQ(bytes + step["measured"]["gaps"].get<int64_t>(), plan_arena) << command;
    milliseconds += step["ms"].get<double>();
    fullest = std::max(fullest, bytes);
  }
  EXPECT_EQ(fullest, at_peak) << command;
  EXPECT_GT(milliseconds, 0.0) << command;

  for (const auto& held : profile["holdings"]) {
    EXPECT_EQ(held["planned_bytes"], held["measured_bytes"]) << command << held;
    EXPECT_GT(held["measured_bytes"], 0) << command << held;
  }
  EXPECT_GT(profile["step_ms"], 0.0);
}

}  // namespace thimble
