#include "thimble/plan/program_record.h"

#include <map>

#include "thimble/plan/pipeline.h"

namespace thimble {
namespace {

StepRecord RecordOf(const Plan& plan, const Step& step, const OpRegistry& ops) {
  const Node& node = plan.graph.node(step.node);
  const NodeCost cost = CostOf(plan.graph, ops, node);
  StepRecord record;
  record.op = node.op;
  record.kernel = ops.Get(node.op).kernels()[step.kernel].name;
  record.layer = node.layer;
  record.phase = Name(node.phase);
  record.flops = cost.flops;
  record.moved_bytes = cost.bytes;
  for (ValueId id : node.inputs) record.inputs.push_back(plan.graph.value(id).name);
  for (ValueId id : node.outputs) record.outputs.push_back(plan.graph.value(id).name);
  return record;
}

std::vector<TechniqueRecord> Techniques(const Plan& plan) {
  std::vector<TechniqueRecord> techniques = plan.graph_techniques;
  for (const auto& pass : PlanPasses()) {
    const PassInfo info = pass->Info();
    for (const Decision& decision : plan.decisions) {
      if (decision.pass != info.name) continue;
      techniques.push_back({decision.pass, std::string(Name(info.exactness)),
                            std::string(info.what), decision.what, decision.saved_bytes,
                            decision.added_flops});
    }
  }
  return techniques;
}

// A plan has layer names only for the residents that it uses. This copies them between the plans of
// a training step, so that momentum has its layer also in the plan of a part.
void NameOthersResidents(ProgramRecord& record) {
  std::map<std::string, const Holding*> named;
  for (const PlanRecord& plan : record.plans) {
    for (const Holding& holding : plan.holdings) {
      if (holding.resident && !holding.layer.empty()) named.emplace(holding.name, &holding);
    }
  }
  for (PlanRecord& plan : record.plans) {
    if (plan.runs_per_step == 0) continue;
    for (Holding& holding : plan.holdings) {
      const auto found = named.find(holding.name);
      if (!holding.resident || !holding.layer.empty() || found == named.end()) continue;
      holding.layer = found->second->layer;
      holding.shape = found->second->shape;
    }
  }
}

void AddRuns(const GraphCost& run, int64_t runs, GraphCost& sum) {
  sum.forward_flops += runs * run.forward_flops;
  sum.step_flops += runs * run.step_flops;
  sum.recompute_flops += runs * run.recompute_flops;
}

}  // namespace

PlanRecord RecordOf(const Plan& plan, const std::string& name, const OpRegistry& ops) {
  const GraphCost cost = CostOf(plan.graph, ops);
  PlanRecord record;
  record.name = name;
  record.device = Name(plan.device);
  record.parameters = CountParameters(plan.graph);
  record.arena_bytes = plan.arena_bytes;
  record.lower_bound_bytes = plan.lower_bound_bytes;
  record.forward_flops = cost.forward_flops;
  record.step_flops = cost.step_flops;
  record.recompute_flops = cost.recompute_flops;
  record.techniques = Techniques(plan);
  for (const Step& step : plan.steps) record.steps.push_back(RecordOf(plan, step, ops));
  record.holdings = Holdings(plan);
  return record;
}

ProgramRecord RecordOf(const Program& program, const OpRegistry& ops) {
  ProgramRecord record;
  record.arena_bytes = program.arena_bytes;
  for (size_t index = 0; index < program.plans.size(); ++index) {
    record.plans.push_back(RecordOf(program.plans[index], program.names[index], ops));
    record.plans.back().runs_per_step = program.runs_per_step[index];
  }
  NameOthersResidents(record);
  return record;
}

GraphCost StepCost(const ProgramRecord& record) {
  GraphCost cost;
  for (const PlanRecord& plan : record.plans) {
    AddRuns({plan.forward_flops, plan.step_flops, plan.recompute_flops}, plan.runs_per_step, cost);
  }
  return cost;
}

GraphCost StepCost(const Program& program, const OpRegistry& ops) {
  GraphCost cost;
  for (size_t index = 0; index < program.plans.size(); ++index) {
    AddRuns(CostOf(program.plans[index].graph, ops), program.runs_per_step[index], cost);
  }
  return cost;
}

}  // namespace thimble
