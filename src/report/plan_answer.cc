#include "thimble/report/plan_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/plan/layer_record.h"
#include "thimble/report/categories_json.h"
#include "thimble/report/csv.h"
#include "thimble/report/known_peaks.h"

namespace thimble {
namespace {

constexpr size_t kLargestListed = 20;

Json PeakJson(const PlanRecord& plan, const MemoryAccount& account) {
  Json json{{"step", account.peak_step}};
  if (account.peak_step < plan.steps.size()) {
    const StepRecord& step = plan.steps[account.peak_step];
    json["op"] = step.op;
    json["layer"] = step.layer;
    json["phase"] = step.phase;
  }
  Json& largest = json["largest"] = Json::EmptyArray();
  for (const Holding& held : LargestAt(plan.holdings, account.peak_step, kLargestListed)) {
    largest.push_back({{"name", held.name},
                       {"bytes", held.size_bytes},
                       {"category", Name(held.category)},
                       {"layer", held.layer},
                       {"phase", held.phase},
                       {"shape", held.shape}});
  }
  return json;
}

Json TechniquesJson(const PlanRecord& plan) {
  Json techniques = Json::EmptyArray();
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

Json SavingsJson(const Savings& savings) {
  const auto list = [](const std::vector<TechniqueSaving>& techniques, int64_t from_bytes) {
    Json json = Json::EmptyArray();
    for (const TechniqueSaving& technique : techniques) {
      json.push_back({{"name", technique.name},
                      {"class", technique.exactness},
                      {"what", technique.what},
                      {"arena_bytes", technique.arena_bytes},
                      {"saved_bytes", from_bytes - technique.arena_bytes},
                      {"without_arena_bytes", technique.without_arena_bytes},
                      {"step_flops", technique.step_flops}});
    }
    return json;
  };
  return {{"bare_arena_bytes", savings.bare_arena_bytes},
          {"always", list(savings.always, savings.bare_arena_bytes)},
          {"asked_arena_bytes", savings.asked_arena_bytes},
          {"offered", list(savings.offered, savings.asked_arena_bytes)},
          {"together_arena_bytes", savings.together_arena_bytes}};
}

Json ChoiceJson(const BudgetChoice& choice) {
  Json levers = Json::EmptyArray();
  for (const ChosenLever& lever : choice.levers) {
    levers.push_back(
        {{"option", lever.option},
         {"class", lever.exactness},
         {"freed_bytes", lever.freed_bytes},
         {"lost_points", lever.lost_points},
         {"added_ms", choice.step_seconds > 0 ? Json(1e3 * lever.added_seconds) : Json()}});
  }
  return {{"options", choice.options()},
          {"lost_points", choice.lost_points()},
          {"smallest_bytes", choice.smallest_bytes},
          {"beyond", choice.beyond},
          {"levers", std::move(levers)}};
}

Json AdviceJson(const BudgetAdvice& advice) {
  const auto object = [](const Advice& tried) {
    return Json{
        {"options", tried.options}, {"arena_bytes", tried.arena_bytes}, {"class", tried.exactness}};
  };
  Json json{{"fitting", Json::EmptyArray()}};
  for (const Advice& fitting : advice.fitting) json["fitting"].push_back(object(fitting));
  if (advice.smallest) json["smallest"] = object(*advice.smallest);
  return json;
}

Json RatiosJson(const PlanAnswer& answer) {
  const auto arena = static_cast<double>(answer.arena_bytes());
  Json json;
  if (answer.plain_arena_bytes > 0) {
    json["to_plain"] = static_cast<double>(answer.plain_arena_bytes) / arena;
  }
  if (const auto known = FindKnownPeak(answer.model, answer.batch)) {
    json["to_pytorch"] = static_cast<double>(known->bytes) / arena;
  }
  return json;
}

Json PlansJson(const ProgramRecord& record) {
  Json json = Json::EmptyArray();
  for (const PlanRecord& plan : record.plans) {
    json.push_back({{"name", plan.name},
                    {"runs_per_step", plan.runs_per_step},
                    {"arena_bytes", plan.arena_bytes}});
  }
  return json;
}

Json LayersJson(const ProgramRecord& record) {
  Json json = Json::EmptyArray();
  for (const LayerRecord& layer : LayersOf(record)) {
    json.push_back({{"layer", layer.name},
                    {"categories", CategoriesJson(layer.at_peak)},
                    {"flops", {{"forward", layer.forward_flops}, {"step", layer.step_flops}}}});
  }
  return json;
}

std::string LayersCsv(const ProgramRecord& record) {
  std::string text = "layer";
  for (size_t index = 0; index < kNumCategories; ++index) {
    text += fmt::format(",{}_bytes", Name(static_cast<Category>(index)));
  }
  text += ",forward_flops,step_flops\n";
  for (const LayerRecord& layer : LayersOf(record)) {
    text += CsvField(layer.name);
    for (const size_t bytes : layer.at_peak) text += fmt::format(",{}", bytes);
    text += fmt::format(",{},{}\n", layer.forward_flops, layer.step_flops);
  }
  return text;
}

std::string CategoriesCsv(const PlanAnswer& answer) {
  const PlanRecord& plan = answer.plan();
  const MemoryAccount account = Account(plan);
  const CategoryBytes largest = LargestOf(account);
  std::string text = "category,peak_bytes,largest_bytes\n";
  for (size_t index = 0; index < kNumCategories; ++index) {
    text += fmt::format("{},{},{}\n", Name(static_cast<Category>(index)), account.at_peak[index],
                        largest[index]);
  }
  return text + fmt::format("gaps,{},\narena,{},\n", account.gap_bytes, answer.arena_bytes());
}

}  // namespace

CategoryBytes LargestOf(const MemoryAccount& account) {
  CategoryBytes largest{};
  for (const CategoryBytes& bytes : account.at_step) {
    for (size_t index = 0; index < kNumCategories; ++index) {
      largest[index] = std::max(largest[index], bytes[index]);
    }
  }
  return largest;
}

std::string ToJson(const PlanAnswer& answer) {
  const PlanRecord& plan = answer.plan();
  const MemoryAccount account = Account(plan);
  Json json;
  json["model"] = answer.model;
  json["batch"] = answer.batch;
  json["device"] = plan.device;
  json["fits"] = answer.fits();
  if (answer.budget_bytes > 0) json["budget_bytes"] = answer.budget_bytes;
  if (answer.choice) json["chosen"] = ChoiceJson(*answer.choice);
  if (!answer.fits()) json["missing_bytes"] = answer.arena_bytes() - answer.budget_bytes;
  if (!answer.fits()) json["largest_batch"] = answer.advice.largest_batch;
  if (!answer.fits()) json["advice"] = AdviceJson(answer.advice);
  json["parameters"] = plan.parameters;
  json["arena_bytes"] = answer.record.arena_bytes;
  json["kept_bytes"] = account.kept_bytes;
  json["plain_arena_bytes"] = answer.plain_arena_bytes;
  json["lower_bound_bytes"] = plan.lower_bound_bytes;
  json["ratios"] = RatiosJson(answer);
  json["categories"] = CategoriesJson(account.at_peak);
  json["categories"]["gaps"] = account.gap_bytes;
  json["largest_categories"] = CategoriesJson(LargestOf(account));
  json["peak"] = PeakJson(plan, account);
  json["techniques"] = TechniquesJson(plan);
  if (answer.savings) json["savings"] = SavingsJson(*answer.savings);
  for (const SmallestArena& arena : answer.smallest) {
    json["smallest"].push_back({{"microbatch", arena.microbatch},
                                {"options", arena.options},
                                {"arena_bytes", arena.arena_bytes},
                                {"step_flops", arena.step_flops}});
  }
  const GraphCost cost = StepCost(answer.record);
  json["flops"] = {{"forward", cost.forward_flops},
                   {"step", cost.step_flops},
                   {"recompute", cost.recompute_flops}};
  json["predicted_step_ms"] = answer.step_seconds > 0 ? Json(1e3 * answer.step_seconds) : Json();
  json["plans"] = PlansJson(answer.record);
  if (answer.with_layers) json["layers"] = LayersJson(answer.record);
  return json.Dump(1) + "\n";
}

std::string ToCsv(const PlanAnswer& answer) {
  return answer.with_layers ? LayersCsv(answer.record) : CategoriesCsv(answer);
}

}  // namespace thimble
