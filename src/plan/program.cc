#include "thimble/plan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "thimble/base/byte_size.h"
#include "thimble/base/check.h"
#include "thimble/plan/pipeline.h"

namespace thimble {
namespace {

Result<void> AddResident(ResidentLayout& layout, Resident resident) {
  resident.size_bytes = RoundUp(resident.size_bytes, kArenaWordBytes);
  if (const Resident* known = layout.Find(resident.name)) {
    if (known->size_bytes != resident.size_bytes || known->category != resident.category) {
      return BadInput(fmt::format("'{}' has different sizes in two graphs", resident.name));
    }
    return {};
  }
  resident.offset = layout.end_bytes;
  layout.end_bytes = RoundUp(layout.end_bytes + resident.size_bytes, kArenaAlignment);
  layout.residents.push_back(std::move(resident));
  return {};
}

// Adds the persistent values of a graph that belong to all plans, or its caches.
Result<void> AddResidentsOf(const Graph& graph, bool caches, ResidentLayout& layout) {
  for (size_t index = 0; index < graph.values.size(); ++index) {
    const Value& value = graph.values[index];
    if (!IsPersistent(value.role) || value.producer.valid() || value.is_packed()) continue;
    if ((value.role == Role::kCache) != caches) continue;
    THIMBLE_TRY(AddResident(
        layout, {value.name, value.size_bytes(), 0, CategoryOf(graph, ValueId(index))}));
  }
  return {};
}

// By group: the residents of the program and the caches of all graphs of the group.
using GroupLayouts = std::map<std::string, ResidentLayout>;

Result<GroupLayouts> LayOutGroups(const ResidentLayout& residents,
                                  const std::vector<NamedGraph>& graphs) {
  GroupLayouts layouts;
  for (const NamedGraph& named : graphs) {
    ResidentLayout& layout = layouts.try_emplace(named.group, residents).first->second;
    if (!named.group.empty()) THIMBLE_TRY(AddResidentsOf(named.graph, /*caches=*/true, layout));
  }
  return layouts;
}

}  // namespace

const Plan* Program::Find(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : &plans[static_cast<size_t>(found - names.begin())];
}

Result<ResidentLayout> LayOutResidents(const std::vector<NamedGraph>& graphs,
                                       const std::vector<Resident>& extra) {
  ResidentLayout layout;
  for (const NamedGraph& named : graphs) {
    THIMBLE_TRY(AddResidentsOf(named.graph, /*caches=*/false, layout));
  }
  for (const Resident& resident : extra) THIMBLE_TRY(AddResident(layout, resident));
  return layout;
}

Result<void> AddToProgram(Program& program, const std::vector<NamedGraph>& graphs,
                          const OpRegistry& ops, const PlanOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(const GroupLayouts layouts, LayOutGroups(program.residents, graphs));
  for (const NamedGraph& named : graphs) {
    auto plan = MakePlan(named.graph, ops, layouts.at(named.group), options);
    if (!plan.ok()) return WithContext(named.name, plan.error());
    program.arena_bytes = std::max(program.arena_bytes, plan->arena_bytes);
    plan->graph_techniques = named.techniques;
    program.names.push_back(named.name);
    program.groups.push_back(named.group);
    program.runs_per_step.push_back(named.runs_per_step);
    program.plans.push_back(std::move(plan).value());
  }
  return {};
}

Result<Program> PlanProgram(const std::vector<NamedGraph>& graphs, const OpRegistry& ops,
                            const std::vector<Resident>& extra, const PlanOptions& options) {
  THIMBLE_TRY(CheckSkippedPasses(options));
  Program program;
  THIMBLE_ASSIGN_OR_RETURN(program.residents, LayOutResidents(graphs, extra));
  THIMBLE_TRY(AddToProgram(program, graphs, ops, options));
  return program;
}

void Append(Program& program, Program more) {
  THIMBLE_CHECK(more.residents == program.residents, "programs with different residents");
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(program.names, more.names);
  append(program.plans, more.plans);
  append(program.runs_per_step, more.runs_per_step);
  append(program.groups, more.groups);
  program.arena_bytes = std::max(program.arena_bytes, more.arena_bytes);
}

}  // namespace thimble
