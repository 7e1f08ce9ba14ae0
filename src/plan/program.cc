#include "thimble/plan/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/byte_size.h"
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

Result<ResidentLayout> LayOutResidents(const std::vector<NamedGraph>& graphs,
                                       const std::vector<Resident>& extra) {
  ResidentLayout layout;
  for (const NamedGraph& named : graphs) {
    for (size_t index = 0; index < named.graph.values.size(); ++index) {
      const Value& value = named.graph.values[index];
      if (!IsPersistent(value.role) || value.producer.valid() || value.is_packed()) continue;
      THIMBLE_TRY(AddResident(
          layout, {value.name, value.size_bytes(), 0, CategoryOf(named.graph, ValueId(index))}));
    }
  }
  for (const Resident& resident : extra) THIMBLE_TRY(AddResident(layout, resident));
  return layout;
}

}  // namespace

const Plan* Program::Find(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? nullptr : &plans[static_cast<size_t>(found - names.begin())];
}

Result<Program> PlanProgram(const std::vector<NamedGraph>& graphs, const OpRegistry& ops,
                            const std::vector<Resident>& extra, const PlanOptions& options) {
  THIMBLE_TRY(CheckSkippedPasses(options));
  Program program;
  THIMBLE_ASSIGN_OR_RETURN(program.residents, LayOutResidents(graphs, extra));
  for (const NamedGraph& named : graphs) {
    auto plan = MakePlan(named.graph, ops, program.residents, options);
    if (!plan.ok()) return WithContext(named.name, plan.error());
    program.arena_bytes = std::max(program.arena_bytes, plan->arena_bytes);
    plan->graph_techniques = named.techniques;
    program.names.push_back(named.name);
    program.runs_per_step.push_back(named.runs_per_step);
    program.plans.push_back(std::move(plan).value());
  }
  return program;
}

}  // namespace thimble
