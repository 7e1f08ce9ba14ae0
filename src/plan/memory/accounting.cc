#include "thimble/plan/memory/accounting.h"

#include <algorithm>

namespace thimble {
namespace {

size_t Index(Category category) { return static_cast<size_t>(category); }

// By buffer: its values, in the order in which they are written.
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

// The youngest value that a buffer holds at a step; none for scratch.
ValueId HeldAt(const Plan& plan, const std::vector<ValueId>& values, size_t step) {
  ValueId held;
  for (ValueId value : values) {
    if (plan.values[value.index()].live.first <= step || !held.valid()) held = value;
  }
  return held;
}

void AddBuffer(const Plan& plan, const Placement& placement, const std::vector<ValueId>& values,
               std::vector<CategoryBytes>& at_step) {
  for (size_t step = placement.live.first; step < placement.live.end; ++step) {
    const ValueId held = HeldAt(plan, values, step);
    const Category category = held.valid() ? CategoryOf(plan.graph, held) : Category::kTransient;
    at_step[step][Index(category)] += placement.size_bytes;
  }
}

}  // namespace

MemoryAccount Account(const Plan& plan) {
  MemoryAccount account;
  account.at_step.resize(std::max<size_t>(plan.steps.size(), 1));
  const auto values = ValuesOfBuffers(plan);
  for (size_t index = 0; index < plan.placements.size(); ++index) {
    if (plan.placements[index].resident) continue;
    AddBuffer(plan, plan.placements[index], values[index], account.at_step);
  }
  for (CategoryBytes& bytes : account.at_step) {
    for (const Resident& resident : plan.residents.residents) {
      bytes[Index(resident.category)] += resident.size_bytes;
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
  account.gap_bytes = plan.arena_bytes - Total(account.at_peak);
  return account;
}

std::vector<LiveBuffer> LargestAt(const Plan& plan, size_t step, size_t count) {
  const auto values = ValuesOfBuffers(plan);
  std::vector<LiveBuffer> alive;
  for (size_t index = 0; index < plan.placements.size(); ++index) {
    const Placement& placement = plan.placements[index];
    if (!placement.live.Contains(step)) continue;
    alive.push_back({BufferId(index), HeldAt(plan, values[index], step), placement.size_bytes});
  }
  std::stable_sort(alive.begin(), alive.end(), [](const LiveBuffer& a, const LiveBuffer& b) {
    return a.size_bytes > b.size_bytes;
  });
  alive.resize(std::min(alive.size(), count));
  return alive;
}

}  // namespace thimble
