// Planted faults: a correct toy plan, one change that breaks it, and the expected message.
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

// Puts `value` into the buffer of `host`, whose live range then covers both.
inline void MoveInto(Plan& plan, std::string_view value, std::string_view host) {
  const LiveRange live = PlaceOf(plan, value).live;
  PlaceOf(plan, value).buffer = PlaceOf(plan, host).buffer;
  Placement& buffer = BufferOf(plan, host);
  buffer.live = {std::min(buffer.live.first, live.first), std::max(buffer.live.end, live.end)};
}

// Sets the live range of the value, or also of its buffer.
inline void SetLife(Plan& plan, std::string_view value, LiveRange live) {
  PlaceOf(plan, value).live = live;
  BufferOf(plan, value).live = live;
}

// Puts the step's scratch into the buffer of a value: for the layout checks this is one buffer.
inline void ScratchInto(Plan& plan, size_t step, std::string_view host) {
  plan.steps[step].scratch = PlaceOf(plan, host).buffer;
  Placement& buffer = BufferOf(plan, host);
  buffer.live = {std::min(buffer.live.first, step), std::max(buffer.live.end, step + 1)};
}

// Makes a node read another value instead, whose live range then includes that step.
inline void ReadInstead(Plan& plan, size_t node, size_t input, std::string_view value) {
  plan.graph.nodes[node].inputs[input] = plan.graph.Find(value);
  const LiveRange live = PlaceOf(plan, value).live;
  SetLife(plan, value, {live.first, std::max(live.end, node + 1)});
}

}  // namespace thimble::toy
