// Small plans and runs made by hand, with known numbers.
#pragma once

#include <string>
#include <utility>

#include "thimble/report/pages/run_record.h"

namespace thimble {

inline Holding ToyHolding(std::string name, std::string layer, Category category, size_t offset,
                          size_t size_bytes, LiveRange live) {
  Holding holding;
  holding.name = std::move(name);
  holding.layer = std::move(layer);
  holding.category = category;
  holding.offset = offset;
  holding.size_bytes = size_bytes;
  holding.live = live;
  return holding;
}

inline StepRecord ToyStep(std::string op, std::string layer, std::string phase) {
  StepRecord step;
  step.op = std::move(op);
  step.layer = std::move(layer);
  step.phase = std::move(phase);
  return step;
}

// Four steps: two forward, one backward, one update. The peak is step 2 with 9,000 bytes of an
// arena of 10,000.
inline PlanRecord ToyPlan() {
  PlanRecord plan;
  plan.name = "train 4";
  plan.device = "cpu";
  plan.parameters = 250;
  plan.arena_bytes = 10'000;
  plan.lower_bound_bytes = 9'000;
  plan.forward_flops = 1'000'000'000;
  plan.step_flops = 3'000'000'000;
  plan.techniques = {{"order", "same-bits", "run in a better order", "nothing to do", 0, 0},
                     {"in-place", "same-bits", "overwrite", "2 values", 5'000, 0}};
  plan.steps = {ToyStep("conv2d", "conv1", "forward"), ToyStep("linear", "fc", "forward"),
                ToyStep("linear_grad", "fc", "backward"), ToyStep("sgd_update", "fc", "update")};
  Holding weight = ToyHolding("fc.weight", "fc", Category::kModel, 0, 1'000, {0, 4});
  weight.resident = true;
  weight.shape = "(10, 25) f32";
  Holding momentum =
      ToyHolding("fc.weight.momentum", "fc", Category::kOptimizer, 1'024, 1'000, {0, 4});
  momentum.resident = true;
  plan.holdings = {weight, momentum, ToyHolding("images", "", Category::kData, 2'048, 500, {0, 2}),
                   ToyHolding("conv1.y", "conv1", Category::kActivations, 3'000, 4'000, {0, 3}),
                   ToyHolding("dconv1.y", "fc", Category::kTransient, 7'000, 3'000, {2, 3})};
  return plan;
}

inline RunRecord ToyRun(const std::string& folder = "runs/toy") {
  RunRecord run;
  run.folder = folder;
  run.config.model = "toy-net";
  run.config.data = "shapes:10,6";
  run.config.batch = 4;
  run.program.arena_bytes = 10'000;
  run.program.plans = {ToyPlan()};
  run.metrics.loss = {{1, 2.5}, {2, 2.25}};
  run.metrics.learning_rate = {{1, 0.1}, {2, 0.1}};
  run.metrics.train_loss = {{2, 2.375}};
  run.metrics.train_accuracy = {{2, 0.25}};
  run.metrics.test_accuracy = {{2, 0.375}};
  TrainSummary summary;
  summary.finished = true;
  summary.steps = 2;
  summary.train_loss = 2.375;
  summary.test_accuracy = 0.375;
  summary.examples_per_second = 12.5;
  summary.seconds = 75;
  summary.plain_arena_bytes = 15'000;
  summary.arena_bytes = 10'000;
  summary.planned_peak_bytes = 9'960;
  summary.measured_peak_bytes = 9'960;
  summary.process_peak_bytes = 20'000'000;
  summary.device = "cpu";
  summary.device_name = "some processor";
  summary.math = "fp32";
  summary.simd = "AVX2";
  summary.threads = 2;
  summary.command = "thimble train --model toy-net";
  summary.version = "0.1.0";
  run.summary = summary;
  return run;
}

// How often `part` occurs in `text`.
inline size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace thimble
