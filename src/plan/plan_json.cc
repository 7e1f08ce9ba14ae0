#include "thimble/plan/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "thimble/base/json_member.h"

namespace thimble {
namespace {

// Members with their names, for writing and reading.
template <class Step, class Visit>
void VisitStep(Step& step, const Visit& visit) {
  visit("op", step.op);
  visit("kernel", step.kernel);
  visit("layer", step.layer);
  visit("phase", step.phase);
  visit("flops", step.flops);
  visit("moved_bytes", step.moved_bytes);
  visit("inputs", step.inputs);
  visit("outputs", step.outputs);
}

template <class Technique, class Visit>
void VisitTechnique(Technique& technique, const Visit& visit) {
  visit("name", technique.name);
  visit("class", technique.exactness);
  visit("what", technique.what);
  visit("done", technique.done);
  visit("saved_bytes", technique.saved_bytes);
  visit("added_flops", technique.added_flops);
}

template <class Held, class Visit>
void VisitHolding(Held& holding, const Visit& visit) {
  visit("name", holding.name);
  visit("layer", holding.layer);
  visit("phase", holding.phase);
  visit("shape", holding.shape);
  visit("category", holding.category);
  visit("buffer", holding.buffer);
  visit("offset", holding.offset);
  visit("bytes", holding.size_bytes);
  visit("first", holding.live.first);
  visit("end", holding.live.end);
  visit("resident", holding.resident);
}

template <class Plan, class Visit>
void VisitTotals(Plan& plan, const Visit& visit) {
  visit("name", plan.name);
  visit("device", plan.device);
  visit("runs_per_step", plan.runs_per_step);
  visit("parameters", plan.parameters);
  visit("arena_bytes", plan.arena_bytes);
  visit("lower_bound_bytes", plan.lower_bound_bytes);
  visit("forward_flops", plan.forward_flops);
  visit("step_flops", plan.step_flops);
  visit("recompute_flops", plan.recompute_flops);
}

// Writing.

struct ToMember {
  Json& json;
  template <class T>
  void operator()(const char* name, const T& member) const {
    json[name] = member;
  }
  void operator()(const char* name, const Category& category) const { json[name] = Name(category); }
};

// Appends a list with this name, with a line for each element. (To one text, to save memory: plans
// of deep networks are long, and the arena already exists when they are written.)
template <class Elements, class VisitElement>
void AppendList(std::string_view name, const Elements& elements, const VisitElement& visit_element,
                std::string& text) {
  fmt::format_to(std::back_inserter(text), ",\n\"{}\":[", name);
  std::string_view between = "\n";
  for (const auto& element : elements) {
    Json json;
    visit_element(element, ToMember{json});
    text += between;
    text += json.Dump();
    between = ",\n";
  }
  text += ']';
}

void AppendPlan(const PlanRecord& plan, std::string& text) {
  const MemoryAccount account = Account(plan);
  Json totals;
  VisitTotals(plan, ToMember{totals});
  totals["peak_step"] = account.peak_step;
  Json& categories = totals["categories"];
  for (size_t index = 0; index < kNumCategories; ++index) {
    categories[std::string(Name(static_cast<Category>(index)))] = account.at_peak[index];
  }
  categories["gaps"] = account.gap_bytes;
  text += totals.Dump();
  text.pop_back();  // the closing brace: more members follow
  const auto technique = [](const auto& element, const auto& to) { VisitTechnique(element, to); };
  const auto step = [](const auto& element, const auto& to) { VisitStep(element, to); };
  const auto holding = [](const auto& element, const auto& to) { VisitHolding(element, to); };
  AppendList("techniques", plan.techniques, technique, text);
  AppendList("steps", plan.steps, step, text);
  AppendList("holdings", plan.holdings, holding, text);
  text += '}';
}

// Reading.

// Keeps the first error and its place.
class Reader {
 public:
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  void Fail(const std::string& where, const std::string& expected) {
    if (!failed()) error_ = fmt::format("{}: expected {}", where, expected);
  }

 private:
  std::string error_;
};

template <class T>
bool Convert(const Json& json, T& member) {
  return FromJson(json, member);
}
// Accepts counts and sizes up to the largest int64.
bool Convert(const Json& json, size_t& number) {
  int64_t wide = 0;
  if (!FromJson(json, wide) || wide < 0) return false;
  number = static_cast<size_t>(wide);
  return true;
}
bool Convert(const Json& json, Category& category) {
  for (size_t index = 0; index < kNumCategories; ++index) {
    const auto candidate = static_cast<Category>(index);
    if (json.is_string() && json.text() == Name(candidate)) {
      category = candidate;
      return true;
    }
  }
  return false;
}
bool Convert(const Json& json, std::vector<std::string>& texts) {
  if (!json.is_array()) return false;
  for (const Json& element : json) {
    if (!Convert(element, texts.emplace_back())) return false;
  }
  return true;
}

template <class T>
const char* Expected(const T& member) {
  return ExpectedOf(member);
}
const char* Expected(const Category&) { return "a category"; }
const char* Expected(const std::vector<std::string>&) { return "a list of strings"; }

// Members that older versions did not write.
bool MayBeMissing(std::string_view name) { return name == "runs_per_step"; }

struct FromMember {
  Reader& reader;
  const Json& json;
  const std::string& where;
  template <class T>
  void operator()(const char* name, T& member) const {
    const Json* found = json.Find(name);
    if (found == nullptr && MayBeMissing(name)) return;
    if (found == nullptr || !Convert(*found, member)) {
      reader.Fail(fmt::format("{}.{}", where, name), Expected(member));
    }
  }
};

template <class Element, class VisitElement>
void ReadList(Reader& reader, const Json& parent, const std::string& where, const char* name,
              const VisitElement& visit_element, std::vector<Element>& elements) {
  const Json* list = parent.Find(name);
  if (list == nullptr || !list->is_array()) {
    return reader.Fail(fmt::format("{}.{}", where, name), "a list");
  }
  for (size_t index = 0; index < list->size() && !reader.failed(); ++index) {
    const std::string place = fmt::format("{}.{}[{}]", where, name, index);
    if (!(*list)[index].is_object()) return reader.Fail(place, "an object");
    visit_element(elements.emplace_back(), FromMember{reader, (*list)[index], place});
  }
}

// Far above any real plan. They keep sums below 2^63 and the time for a malicious file below
// seconds.
constexpr size_t kMaxArenaBytes = size_t{1} << 44;
constexpr size_t kMaxHoldings = size_t{1} << 18;
constexpr size_t kMaxSteps = size_t{1} << 16;
constexpr size_t kMaxCells = size_t{1} << 28;  // holdings times steps
constexpr size_t kMaxPlans = 128;
constexpr int64_t kMaxRuns = int64_t{1} << 20;
constexpr int64_t kMaxStepFlops = int64_t{1} << 55;  // all runs of a plan in a step

bool SensibleFlops(const PlanRecord& plan) {
  if (plan.runs_per_step < 0 || plan.runs_per_step > kMaxRuns) return false;
  const int64_t most = kMaxStepFlops / std::max<int64_t>(plan.runs_per_step, 1);
  for (const int64_t flops : {plan.forward_flops, plan.step_flops, plan.recompute_flops}) {
    if (flops < 0 || flops > most) return false;
  }
  int64_t left = most;
  for (const StepRecord& step : plan.steps) {
    if (step.flops < 0 || step.flops > left) return false;
    left -= step.flops;
  }
  return true;
}

bool Sensible(const PlanRecord& plan) {
  return SensibleFlops(plan) && plan.arena_bytes <= kMaxArenaBytes &&
         plan.holdings.size() <= kMaxHoldings && plan.steps.size() <= kMaxSteps &&
         plan.holdings.size() * plan.steps.size() <= kMaxCells;
}

// Checks that all holdings are inside the arena and that their live ranges are within the steps.
void CheckHoldings(Reader& reader, const PlanRecord& plan, const std::string& where) {
  const size_t num_steps = std::max<size_t>(plan.steps.size(), 1);
  for (size_t index = 0; index < plan.holdings.size(); ++index) {
    const Holding& holding = plan.holdings[index];
    const bool inside = holding.offset <= plan.arena_bytes &&
                        holding.size_bytes <= plan.arena_bytes - holding.offset;
    const std::string place = fmt::format("{}.holdings[{}]", where, index);
    if (!inside) return reader.Fail(place, "bytes inside the arena");
    if (holding.live.first >= holding.live.end || holding.live.end > num_steps) {
      return reader.Fail(place, "a live range within the steps");
    }
  }
}

// Checks that the live bytes of each step fit into the arena: holdings alive together do not
// overlap.
void CheckAccount(Reader& reader, const PlanRecord& plan, const std::string& where) {
  if (reader.failed()) return;
  for (const CategoryBytes& bytes : Account(plan).at_step) {
    if (Total(bytes) > plan.arena_bytes) {
      return reader.Fail(where, "at most as many live bytes as the arena has");
    }
  }
}

void ReadPlan(Reader& reader, const Json& json, const std::string& where, PlanRecord& plan) {
  if (!json.is_object()) return reader.Fail(where, "an object");
  VisitTotals(plan, FromMember{reader, json, where});
  const auto technique = [](auto& element, const auto& from) { VisitTechnique(element, from); };
  const auto step = [](auto& element, const auto& from) { VisitStep(element, from); };
  const auto holding = [](auto& element, const auto& from) { VisitHolding(element, from); };
  ReadList(reader, json, where, "techniques", technique, plan.techniques);
  ReadList(reader, json, where, "steps", step, plan.steps);
  ReadList(reader, json, where, "holdings", holding, plan.holdings);
  if (reader.failed()) return;
  if (!Sensible(plan)) return reader.Fail(where, "a plan within the size limits");
  CheckHoldings(reader, plan, where);
  CheckAccount(reader, plan, where);
}

}  // namespace

std::string ToJson(const ProgramRecord& record) {
  std::string text = fmt::format("{{\"arena_bytes\":{},\n\"plans\":[", record.arena_bytes);
  for (size_t index = 0; index < record.plans.size(); ++index) {
    text += index > 0 ? ",\n" : "\n";
    AppendPlan(record.plans[index], text);
  }
  text += "]}\n";
  return text;
}

Result<ProgramRecord> ProgramRecordFromJson(std::string_view text) {
  THIMBLE_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  if (!json.is_object()) return BadInput("is not a JSON object");
  ProgramRecord record;
  Reader reader;
  FromMember{reader, json, "top"}("arena_bytes", record.arena_bytes);
  const Json* plans = json.Find("plans");
  if (plans == nullptr || !plans->is_array() || plans->empty()) {
    reader.Fail("plans", "a list with at least one plan");
  }
  if (!reader.failed() && plans->size() > kMaxPlans) {
    reader.Fail("plans", fmt::format("at most {} plans", kMaxPlans));
  }
  for (size_t index = 0; !reader.failed() && index < plans->size(); ++index) {
    record.plans.emplace_back().runs_per_step = index == 0 ? 1 : 0;
    ReadPlan(reader, (*plans)[index], fmt::format("plans[{}]", index), record.plans.back());
  }
  if (reader.failed()) return BadInput(reader.error());
  return record;
}

}  // namespace thimble
