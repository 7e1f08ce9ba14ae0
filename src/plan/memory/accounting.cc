#include "thimble/plan/memory/accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace thimble {
namespace {

size_t Index(Category category) { return static_cast<size_t>(category); }

// By buffer: its values in the order in which they are written.
std::vector<std::vector<ValueId>> ValuesOfBuffers(const Plan& plan) {
  std::vector<std::vector<ValueId>> values(plan.placements.size());
  for (size_t index = 0; index < plan.values.size(); ++index) {
    values[plan.values[index].buffer.index()].emplace_back(index);
  }
  for (auto& of_buffer : values) {
    std::sort(of_buffer.begin(), of_buffer.end(), [&](ValueId a, ValueId b) {
      return plan.values[a.index()].live.first < plan.values[b.index()].live.first;
    });
  }
  return values;
}

// By buffer: the node whose scratch it is, or null.
std::vector<const Node*> NodesOfScratch(const Plan& plan) {
  std::vector<const Node*> nodes(plan.placements.size(), nullptr);
  for (const Step& step : plan.steps) {
    if (step.scratch.valid()) nodes[step.scratch.index()] = &plan.graph.node(step.node);
  }
  return nodes;
}

std::string ShapeText(const Value& value) {
  return fmt::format("{} {}", ToString(value.shape), Name(value.dtype));
}

// The residents, whether the plan uses them or not.
void AppendResidents(const Plan& plan, std::vector<Holding>& holdings) {
  std::map<std::string, int64_t> buffers;
  for (size_t index = 0; index < plan.placements.size(); ++index) {
    const Placement& placement = plan.placements[index];
    if (placement.resident) buffers.emplace(placement.name, static_cast<int64_t>(index));
  }
  for (const Resident& resident : plan.residents.residents) {
    Holding holding;
    holding.name = resident.name;
    if (const ValueId value = plan.graph.Find(resident.name); value.valid()) {
      holding.layer = LayerOf(plan.graph, value);
      holding.shape = ShapeText(plan.graph.value(value));
    }
    holding.category = resident.category;
    if (const auto buffer = buffers.find(resident.name); buffer != buffers.end()) {
      holding.buffer = buffer->second;
    }
    holding.offset = resident.offset;
    holding.size_bytes = resident.size_bytes;
    holding.live = {0, std::max<size_t>(plan.steps.size(), 1)};
    holding.resident = true;
    holdings.push_back(std::move(holding));
  }
}

Holding PartOf(const Plan& plan, size_t buffer, LiveRange live) {
  const Placement& placement = plan.placements[buffer];
  Holding holding;
  holding.name = placement.name;
  holding.buffer = static_cast<int64_t>(buffer);
  holding.offset = placement.offset;
  holding.size_bytes = placement.size_bytes;
  holding.live = live;
  return holding;
}

// One holding for each value of a buffer; each ends when the next one is written.
void AppendValues(const Plan& plan, size_t buffer, const std::vector<ValueId>& values,
                  std::vector<Holding>& holdings) {
  const LiveRange whole = plan.placements[buffer].live;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = plan.graph.value(values[i]);
    LiveRange live = whole;
    if (i > 0) live.first = plan.values[values[i].index()].live.first;
    if (i + 1 < values.size()) live.end = plan.values[values[i + 1].index()].live.first;
    if (live.first >= live.end) continue;
    Holding holding = PartOf(plan, buffer, live);
    holding.name = value.name;
    holding.shape = ShapeText(value);
    holding.category = CategoryOf(plan.graph, values[i]);
    if (value.producer.valid()) {
      const Node& node = plan.graph.node(value.producer);
      holding.layer = node.layer;
      holding.phase = Name(node.phase);
    }
    holdings.push_back(std::move(holding));
  }
}

}  // namespace

std::vector<Holding> Holdings(const Plan& plan) {
  std::vector<Holding> holdings;
  AppendResidents(plan, holdings);
  const auto values = ValuesOfBuffers(plan);
  const auto scratch_of = NodesOfScratch(plan);
  for (size_t buffer = 0; buffer < plan.placements.size(); ++buffer) {
    const Placement& placement = plan.placements[buffer];
    if (placement.resident) continue;
    if (!values[buffer].empty()) {
      AppendValues(plan, buffer, values[buffer], holdings);
    } else {
      Holding holding = PartOf(plan, buffer, placement.live);
      if (const Node* node = scratch_of[buffer]) {
        holding.layer = node->layer;
        holding.phase = Name(node->phase);
      }
      holdings.push_back(std::move(holding));
    }
  }
  return holdings;
}

MemoryAccount Account(std::span<const Holding> holdings, size_t num_steps, size_t arena_bytes) {
  MemoryAccount account;
  account.at_step.resize(std::max<size_t>(num_steps, 1));
  // Differences between steps; their prefix sums are the live bytes. Unsigned wrap-around cancels.
  for (const Holding& holding : holdings) {
    if (holding.live.first >= holding.live.end) continue;
    account.at_step[holding.live.first][Index(holding.category)] += holding.size_bytes;
    if (holding.live.end >= account.at_step.size()) continue;
    account.at_step[holding.live.end][Index(holding.category)] -= holding.size_bytes;
  }
  for (size_t step = 1; step < account.at_step.size(); ++step) {
    for (size_t index = 0; index < kNumCategories; ++index) {
      account.at_step[step][index] += account.at_step[step - 1][index];
    }
  }
  for (size_t step = 0; step < account.at_step.size(); ++step) {
    const CategoryBytes& bytes = account.at_step[step];
    if (Total(bytes) > Total(account.at_step[account.peak_step])) account.peak_step = step;
    account.kept_bytes =
        std::max(account.kept_bytes,
                 bytes[Index(Category::kModel)] + bytes[Index(Category::kGradients)] +
                     bytes[Index(Category::kOptimizer)] + bytes[Index(Category::kActivations)]);
  }
  account.at_peak = account.at_step[account.peak_step];
  account.gap_bytes = arena_bytes - Total(account.at_peak);
  return account;
}

MemoryAccount Account(const Plan& plan) {
  return Account(Holdings(plan), plan.steps.size(), plan.arena_bytes);
}

std::vector<Holding> LargestAt(std::span<const Holding> holdings, size_t step, size_t count) {
  std::vector<Holding> alive;
  for (const Holding& holding : holdings) {
    if (holding.live.Contains(step)) alive.push_back(holding);
  }
  std::stable_sort(alive.begin(), alive.end(),
                   [](const Holding& a, const Holding& b) { return a.size_bytes > b.size_bytes; });
  alive.resize(std::min(alive.size(), count));
  return alive;
}

}  // namespace thimble
