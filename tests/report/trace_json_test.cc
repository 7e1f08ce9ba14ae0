#include "thimble/report/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/made_profile.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

int64_t Nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

// The events of a trace with this phase letter and, if above 0, this track.
std::vector<Json> Events(const Profile& profile, const std::string& letter, int track = 0) {
  const Json trace = ParseJson(TraceJson(profile)).value();
  std::vector<Json> events;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != letter || (track > 0 && event["tid"] != track)) continue;
    events.push_back(event);
  }
  return events;
}

TEST(TraceJson, NamesProcessAndTracks) {
  const auto names = Events(MadeProfile(), "M");
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[0]["name"], "process_name");
  EXPECT_EQ(names[0]["args"]["name"], "thimble: net, batch 8 on abacus");
  for (size_t i = 1; i < names.size(); ++i) {
    EXPECT_EQ(names[i]["name"], "thread_name");
    EXPECT_EQ(names[i]["tid"], i);
  }
}

TEST(TraceJson, OpsFollowEachOther) {
  const Profile profile = MadeProfile();
  const auto ops = Events(profile, "X", 3);
  ASSERT_EQ(ops.size(), 8U);
  int64_t time = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(Nanoseconds(ops[i]["ts"]), time);
    EXPECT_EQ(Nanoseconds(ops[i]["dur"]), std::llround(profile.timed_runs[i / 4][i % 4] * 1e9));
    EXPECT_EQ(ops[i]["args"]["step"], i % 4);
    time += Nanoseconds(ops[i]["dur"]);
  }
  EXPECT_EQ(time, 21'000'000);
  EXPECT_EQ(ops[2]["name"], "scale_grad second");
  EXPECT_EQ(ops[2]["args"]["kernel"], "scale_grad_kernel");
  EXPECT_EQ(ops[2]["args"]["flops"], 20'000'000);
}

TEST(TraceJson, StepsAndPhasesSpanTheirOps) {
  const auto steps = Events(MadeProfile(), "X", 1);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(Nanoseconds(steps[0]["dur"]), 10'000'000);
  EXPECT_EQ(Nanoseconds(steps[1]["ts"]), 10'000'000);
  EXPECT_EQ(Nanoseconds(steps[1]["dur"]), 11'000'000);
  const auto phases = Events(MadeProfile(), "X", 2);
  ASSERT_EQ(phases.size(), 6U);
  EXPECT_EQ(phases[0]["name"], "forward");
  EXPECT_EQ(Nanoseconds(phases[0]["dur"]), 3'000'000);
  EXPECT_EQ(phases[1]["name"], "backward");
  EXPECT_EQ(phases[2]["name"], "update");
  EXPECT_EQ(Nanoseconds(phases[3]["ts"]), 10'000'000);
}

// Real times are not whole nanoseconds; the parts must still add up to the whole.
TEST(TraceJson, RoundedTimesAddUp) {
  Profile profile = MadeProfile();
  for (auto& run : profile.timed_runs) {
    for (double& seconds : run) seconds /= 3e3;
  }
  int64_t sum = 0;
  for (const Json& op : Events(profile, "X", 3)) {
    EXPECT_EQ(Nanoseconds(op["ts"]), sum);
    sum += Nanoseconds(op["dur"]);
  }
  int64_t of_steps = 0;
  for (const Json& step : Events(profile, "X", 1)) of_steps += Nanoseconds(step["dur"]);
  EXPECT_EQ(of_steps, sum);
}

TEST(TraceJson, CountersAreTheMeasuredAccount) {
  const Profile profile = ProfileWithDifference();
  const MemoryAccount account = MeasuredAccount(profile);
  const auto counters = Events(profile, "C");
  ASSERT_EQ(counters.size(), 16U);
  for (size_t i = 0; i < counters.size(); i += 2) {
    const CategoryBytes& bytes = account.at_step[i / 2 % 4];
    for (size_t category = 0; category < kNumCategories; ++category) {
      EXPECT_EQ(counters[i]["args"][std::string(Name(static_cast<Category>(category)))],
                bytes[category]);
    }
    EXPECT_EQ(counters[i]["args"].size(), kNumCategories);
    EXPECT_EQ(counters[i + 1]["args"]["bytes"], Total(bytes));
  }
}

TEST(TraceJson, TimeNeverGoesBack) {
  const Json trace = ParseJson(TraceJson(MadeProfile())).value();
  double time = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["ts"], time);
    time = event["ts"].number();
  }
}

TEST(TraceJson, OddNamesStayValid) {
  Profile profile = MadeProfile();
  profile.record.steps[0].layer = "a \"b\" \\ \n c";
  EXPECT_EQ(Events(profile, "X", 3)[0]["name"], "scale a \"b\" \\ \n c");
}

}  // namespace
}  // namespace thimble
