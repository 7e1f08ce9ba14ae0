// A small profile made by hand, for tests of its outputs: two layers, four steps, with the peak at
// step 2 (3764 of 4096 bytes).
#pragma once

#include <string>
#include <vector>

#include "thimble/train/profile/profile.h"

namespace thimble {

inline StepRecord ProfileStep(const std::string& op, const std::string& layer,
                              const std::string& phase, int64_t flops) {
  StepRecord step;
  step.op = op;
  step.kernel = op + "_kernel";
  step.layer = layer;
  step.phase = phase;
  step.flops = flops;
  step.moved_bytes = 1'000'000;
  return step;
}

inline Holding MadeHolding(const std::string& name, const std::string& layer, Category category,
                           size_t size_bytes, LiveRange live) {
  Holding holding;
  holding.name = name;
  holding.layer = layer;
  holding.category = category;
  holding.size_bytes = size_bytes;
  holding.live = live;
  return holding;
}

inline Profile MadeProfile() {
  Profile profile;
  profile.model = "net";
  profile.batch = 8;
  profile.device_name = "abacus";
  profile.target = "AVX2";
  profile.threads = 2;
  profile.record.device = "cpu";
  profile.record.parameters = 100;
  profile.record.arena_bytes = 4096;
  profile.record.step_flops = 40'000'000;
  profile.record.steps = {ProfileStep("scale", "first", "forward", 10'000'000),
                          ProfileStep("scale", "second", "forward", 10'000'000),
                          ProfileStep("scale_grad", "second", "backward", 20'000'000),
                          ProfileStep("sgd", "first", "update", 0)};
  profile.record.holdings = {MadeHolding("first", "first", Category::kModel, 400, {0, 4}),
                             MadeHolding("prefetch[0].images", "", Category::kData, 64, {0, 4}),
                             MadeHolding("y", "first", Category::kActivations, 1000, {0, 3}),
                             MadeHolding("z", "second", Category::kActivations, 2000, {1, 3}),
                             MadeHolding("dz", "second", Category::kTransient, 300, {2, 4})};
  profile.measured_holdings = profile.record.holdings;
  profile.arena_bytes = profile.allocated_bytes = 4096;
  profile.planned_peak_bytes = profile.measured_peak_bytes = 4090;
  profile.timed_runs = {{0.001, 0.002, 0.003, 0.004}, {0.001, 0.002, 0.003, 0.005}};
  profile.op_seconds = {0.001, 0.002, 0.003, 0.004};
  profile.step_seconds = 0.010;
  return profile;
}

// The same, but one word more of "z" is in use than planned.
inline Profile ProfileWithDifference() {
  Profile profile = MadeProfile();
  profile.measured_holdings[3].size_bytes += 4;
  return profile;
}

}  // namespace thimble
