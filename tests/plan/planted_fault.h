// Planted faults: a correct toy plan, one change that breaks it, and what the verifier must say.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "tests/plan/toy_plan.h"
#include "thimble/plan/verify_plan.h"

namespace thimble::toy {

struct Fault {
  std::string name;
  std::function<void(Plan&)> plant;
  std::string message;  // part of the verifier's
};

inline std::string NameOf(const ::testing::TestParamInfo<Fault>& info) { return info.param.name; }

inline const OpRegistry& Ops() {
  static const OpRegistry* ops = new OpRegistry(MakeOps());
  return *ops;
}

inline Plan TrainingPlan() { return NaivePlanner(MakeTrainingGraph(Ops())).Run(); }

inline void ExpectRejected(const Plan& plan, const std::string& message) {
  const auto verdict = VerifyPlan(Ops(), plan);
  ASSERT_FALSE(verdict.ok());
  EXPECT_NE(verdict.error().message.find(message), std::string::npos)
      << "said: " << verdict.error().message << "\nwanted: " << message;
}

inline void ExpectFound(const Fault& fault) {
  Plan plan = TrainingPlan();
  const auto before = VerifyPlan(Ops(), plan);
  ASSERT_TRUE(before.ok()) << before.error().message;
  fault.plant(plan);
  ExpectRejected(plan, fault.message);
}

inline ValuePlace& PlaceOf(Plan& plan, std::string_view value) {
  return plan.values[plan.graph.Find(value).index()];
}

inline Placement& BufferOf(Plan& plan, std::string_view value) {
  return plan.placements[PlaceOf(plan, value).buffer.index()];
}

inline Placement& ScratchOf(Plan& plan, size_t step) {
  return plan.placements[plan.steps[step].scratch.index()];
}

// Puts `value` into the buffer of `host`, which then lives as long as both.
inline void MoveInto(Plan& plan, std::string_view value, std::string_view host) {
  const LiveRange live = PlaceOf(plan, value).live;
  PlaceOf(plan, value).buffer = PlaceOf(plan, host).buffer;
  Placement& buffer = BufferOf(plan, host);
  buffer.live = {std::min(buffer.live.first, live.first), std::max(buffer.live.end, live.end)};
}

// The value, or its buffer too, is said to live like this.
inline void SetLife(Plan& plan, std::string_view value, LiveRange live) {
  PlaceOf(plan, value).live = live;
  BufferOf(plan, value).live = live;
}

// Lets the step's scratch lie in the buffer of a value: to the layout's own checks that is one
// buffer.
inline void ScratchInto(Plan& plan, size_t step, std::string_view host) {
  plan.steps[step].scratch = PlaceOf(plan, host).buffer;
  Placement& buffer = BufferOf(plan, host);
  buffer.live = {std::min(buffer.live.first, step), std::max(buffer.live.end, step + 1)};
}

// Lets a node read another value instead, which then lives at least until there.
inline void ReadInstead(Plan& plan, size_t node, size_t input, std::string_view value) {
  plan.graph.nodes[node].inputs[input] = plan.graph.Find(value);
  const LiveRange live = PlaceOf(plan, value).live;
  SetLife(plan, value, {live.first, std::max(live.end, node + 1)});
}

}  // namespace thimble::toy
