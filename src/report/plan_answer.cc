#include "thimble/report/plan_answer.h"

#include <nlohmann/json.hpp>

namespace thimble {
namespace {

using Json = nlohmann::ordered_json;

Json CategoriesJson(const MemoryAccount& account) {
  Json json;
  for (size_t index = 0; index < kNumCategories; ++index) {
    json[std::string(Name(static_cast<Category>(index)))] = account.at_peak[index];
  }
  json["gaps"] = account.gap_bytes;
  return json;
}

Json TechniquesJson(const PlanRecord& plan) {
  Json techniques = Json::array();
  for (const TechniqueRecord& technique : plan.techniques) {
    techniques.push_back({{"name", technique.name},
                          {"class", technique.exactness},
                          {"what", technique.what},
                          {"done", technique.done},
                          {"saved_bytes", technique.saved_bytes},
                          {"added_flops", technique.added_flops}});
  }
  return techniques;
}

}  // namespace

std::string ToJson(const PlanAnswer& answer) {
  const PlanRecord& plan = answer.plan();
  const MemoryAccount account = Account(plan);
  Json json;
  json["model"] = answer.model;
  json["batch"] = answer.batch;
  json["device"] = plan.device;
  json["fits"] = answer.fits();
  if (answer.budget_bytes > 0) json["budget_bytes"] = answer.budget_bytes;
  json["parameters"] = plan.parameters;
  json["arena_bytes"] = answer.record.arena_bytes;
  json["kept_bytes"] = account.kept_bytes;
  json["plain_arena_bytes"] = answer.plain_arena_bytes;
  json["lower_bound_bytes"] = plan.lower_bound_bytes;
  json["categories"] = CategoriesJson(account);
  json["techniques"] = TechniquesJson(plan);
  json["flops"] = {{"forward", plan.forward_flops},
                   {"step", plan.step_flops},
                   {"recompute", plan.recompute_flops}};
  return json.dump(1) + "\n";
}

}  // namespace thimble
