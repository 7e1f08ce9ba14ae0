#include "thimble/report/profile_json.h"

#include "thimble/report/categories_json.h"

namespace thimble {
namespace {

// Adds the unused bytes of the arena as "gaps".
Json WithGaps(const CategoryBytes& bytes, size_t arena_bytes) {
  Json json = CategoriesJson(bytes);
  json["gaps"] = arena_bytes - Total(bytes);
  return json;
}

Json PeakJson(const Profile& profile) {
  const MemoryAccount planned = PlannedAccount(profile);
  const CategoryBytes measured = MeasuredAccount(profile).at_step[planned.peak_step];
  return {{"step", planned.peak_step},
          {"planned", WithGaps(planned.at_peak, profile.record.arena_bytes)},
          {"measured", WithGaps(measured, profile.record.arena_bytes)}};
}

// All plans of a step. Categories, steps and holdings are those of the first plan.
Json PlansJson(const Profile& profile) {
  Json plans = Json::EmptyArray();
  const auto add = [&](const PlanRecord& record) {
    plans.push_back({{"name", record.name},
                     {"runs_per_step", record.runs_per_step},
                     {"steps", record.steps.size()}});
  };
  add(profile.record);
  for (const OtherPlan& other : profile.others) add(other.record);
  return plans;
}

Json OpsJson(const Profile& profile) {
  Json ops = Json::EmptyArray();
  for (const OpProfile& op : ByOp(profile)) {
    ops.push_back({{"op", op.op},
                   {"calls", op.calls},
                   {"ms", op.seconds * 1e3},
                   {"flops", op.flops},
                   {"moved_bytes", op.moved_bytes}});
  }
  return ops;
}

Json LayersJson(const Profile& profile) {
  Json layers = Json::EmptyArray();
  for (const LayerProfile& layer : ByLayer(profile)) {
    layers.push_back({{"layer", layer.planned.name},
                      {"planned", CategoriesJson(layer.planned.at_peak)},
                      {"measured", CategoriesJson(layer.measured)},
                      {"forward_ms", layer.forward_seconds * 1e3},
                      {"backward_ms", layer.backward_seconds * 1e3},
                      {"update_ms", layer.update_seconds * 1e3},
                      {"flops", layer.planned.step_flops}});
  }
  return layers;
}

Json StepsJson(const Profile& profile) {
  const MemoryAccount planned = PlannedAccount(profile);
  const MemoryAccount measured = MeasuredAccount(profile);
  const size_t arena_bytes = profile.record.arena_bytes;
  Json steps = Json::EmptyArray();
  for (size_t i = 0; i < profile.record.steps.size(); ++i) {
    const StepRecord& step = profile.record.steps[i];
    steps.push_back({{"phase", step.phase},
                     {"op", step.op},
                     {"kernel", step.kernel},
                     {"layer", step.layer},
                     {"ms", profile.op_seconds[i] * 1e3},
                     {"flops", step.flops},
                     {"moved_bytes", step.moved_bytes},
                     {"planned", WithGaps(planned.at_step[i], arena_bytes)},
                     {"measured", WithGaps(measured.at_step[i], arena_bytes)}});
  }
  return steps;
}

Json HoldingsJson(const Profile& profile) {
  Json holdings = Json::EmptyArray();
  for (size_t i = 0; i < profile.record.holdings.size(); ++i) {
    const Holding& held = profile.record.holdings[i];
    holdings.push_back({{"name", held.name},
                        {"layer", held.layer},
                        {"category", Name(held.category)},
                        {"first", held.live.first},
                        {"end", held.live.end},
                        {"planned_bytes", held.size_bytes},
                        {"measured_bytes", profile.measured_holdings[i].size_bytes}});
  }
  return holdings;
}

}  // namespace

std::string ToJson(const Profile& profile) {
  const std::vector<std::string> differences = DifferencesOf(profile);
  Json json;
  json["model"] = profile.model;
  json["batch"] = profile.batch;
  json["device"] = profile.record.device;
  json["device_name"] = profile.device_name;
  json["target"] = profile.target;
  json["threads"] = profile.threads;
  json["repeat"] = profile.timed_runs.size();
  json["agrees"] = differences.empty();
  json["differences"] = differences;
  json["arena_bytes"] = profile.arena_bytes;
  json["allocated_bytes"] = profile.allocated_bytes;
  json["planned_peak_bytes"] = profile.planned_peak_bytes;
  json["measured_peak_bytes"] = profile.measured_peak_bytes;
  json["heap_calls_in_steps"] = profile.heap_calls_in_steps;
  json["map_calls_in_steps"] = profile.map_calls_in_steps;
  json["device_allocations_in_steps"] = profile.device_allocations_in_steps;
  json["step_ms"] = profile.step_seconds * 1e3;
  json["predicted_step_ms"] =
      profile.predicted_seconds > 0 ? Json(profile.predicted_seconds * 1e3) : Json();
  json[profile.unit + "_per_second"] = profile.examples_per_second();
  json["plans"] = PlansJson(profile);
  json["categories"] = PeakJson(profile);
  json["ops"] = OpsJson(profile);
  json["layers"] = LayersJson(profile);
  json["steps"] = StepsJson(profile);
  json["holdings"] = HoldingsJson(profile);
  return json.Dump(1) + "\n";
}

}  // namespace thimble
