#include "thimble/plan/plan_json.h"

#include <nlohmann/json.hpp>

#include "thimble/plan/cost.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/plan/pipeline.h"

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

Json StepsJson(const Plan& plan, const OpRegistry& ops) {
  Json steps = Json::array();
  for (const Step& step : plan.steps) {
    const Node& node = plan.graph.node(step.node);
    Json inputs = Json::array();
    Json outputs = Json::array();
    for (ValueId id : node.inputs) inputs.push_back(plan.graph.value(id).name);
    for (ValueId id : node.outputs) outputs.push_back(plan.graph.value(id).name);
    steps.push_back({{"op", node.op},
                     {"layer", node.layer},
                     {"phase", Name(node.phase)},
                     {"kernel", ops.Get(node.op).kernels()[step.kernel].name},
                     {"inputs", inputs},
                     {"outputs", outputs}});
  }
  return steps;
}

Json BuffersJson(const Plan& plan) {
  Json buffers = Json::array();
  for (const Placement& placement : plan.placements) {
    buffers.push_back({{"name", placement.name},
                       {"offset", placement.offset},
                       {"bytes", placement.size_bytes},
                       {"first", placement.live.first},
                       {"end", placement.live.end},
                       {"resident", placement.resident}});
  }
  return buffers;
}

Json DecisionsJson(const Plan& plan) {
  Json decisions = Json::array();
  for (const Decision& decision : plan.decisions) {
    decisions.push_back({{"pass", decision.pass},
                         {"what", decision.what},
                         {"saved_bytes", decision.saved_bytes},
                         {"added_flops", decision.added_flops}});
  }
  return decisions;
}

Json TechniquesJson(const Plan& plan) {
  Json techniques = Json::array();
  for (const auto& pass : PlanPasses()) {
    for (const Decision& decision : plan.decisions) {
      if (decision.pass != pass->Info().name) continue;
      techniques.push_back({{"name", decision.pass},
                            {"class", Name(pass->Info().exactness)},
                            {"what", pass->Info().what},
                            {"done", decision.what},
                            {"saved_bytes", decision.saved_bytes},
                            {"added_flops", decision.added_flops}});
    }
  }
  return techniques;
}

}  // namespace

std::string ProgramJson(const Program& program, const OpRegistry& ops) {
  Json json;
  json["arena_bytes"] = program.arena_bytes;
  Json& residents = json["residents"] = Json::array();
  for (const Resident& resident : program.residents.residents) {
    residents.push_back({{"name", resident.name},
                         {"category", Name(resident.category)},
                         {"offset", resident.offset},
                         {"bytes", resident.size_bytes}});
  }
  Json& plans = json["plans"] = Json::array();
  for (size_t index = 0; index < program.plans.size(); ++index) {
    const Plan& plan = program.plans[index];
    const MemoryAccount account = Account(plan);
    plans.push_back({{"name", program.names[index]},
                     {"device", Name(plan.device)},
                     {"arena_bytes", plan.arena_bytes},
                     {"lower_bound_bytes", plan.lower_bound_bytes},
                     {"peak_step", account.peak_step},
                     {"categories", CategoriesJson(account)},
                     {"decisions", DecisionsJson(plan)},
                     {"steps", StepsJson(plan, ops)},
                     {"buffers", BuffersJson(plan)}});
  }
  return json.dump(1) + "\n";
}

std::string PlanSummaryJson(const Program& program, const OpRegistry& ops,
                            const PlanSummaryInput& input) {
  const Plan& plan = program.plans.front();
  const MemoryAccount account = Account(plan);
  const GraphCost cost = CostOf(plan.graph, ops);
  const auto arena_bytes = static_cast<int64_t>(program.arena_bytes);
  Json json;
  json["model"] = input.model;
  json["batch"] = input.batch;
  json["device"] = Name(plan.device);
  json["fits"] = input.budget_bytes <= 0 || arena_bytes <= input.budget_bytes;
  if (input.budget_bytes > 0) json["budget_bytes"] = input.budget_bytes;
  json["parameters"] = CountParameters(plan.graph);
  json["arena_bytes"] = arena_bytes;
  json["kept_bytes"] = account.kept_bytes;
  json["plain_arena_bytes"] = input.plain_arena_bytes;
  json["lower_bound_bytes"] = plan.lower_bound_bytes;
  json["categories"] = CategoriesJson(account);
  json["techniques"] = TechniquesJson(plan);
  json["flops"] = {{"forward", cost.forward_flops},
                   {"step", cost.step_flops},
                   {"recompute", cost.recompute_flops}};
  return json.dump(1) + "\n";
}

}  // namespace thimble
