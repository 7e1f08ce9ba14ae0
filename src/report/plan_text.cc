#include "thimble/report/plan_text.h"

#include <fmt/format.h>

#include "thimble/base/byte_size.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/report/text_table.h"

namespace thimble {
namespace {

// As many as tell where the memory goes without scrolling.
constexpr size_t kLargestShown = 5;

std::string Bytes(size_t bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

std::string Share(size_t part, size_t whole) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string CategoryTable(const MemoryAccount& account, size_t arena_bytes) {
  TextTable table({"at the peak", "bytes", "share"});
  for (size_t index = 0; index < kNumCategories; ++index) {
    table.AddRow({std::string(Name(static_cast<Category>(index))), Bytes(account.at_peak[index]),
                  Share(account.at_peak[index], arena_bytes)});
  }
  table.AddRow({"gaps", Bytes(account.gap_bytes), Share(account.gap_bytes, arena_bytes)});
  table.AddRow({"arena", Bytes(arena_bytes), ""});
  return table.ToString();
}

std::string LargestTable(const Plan& plan, const MemoryAccount& account) {
  TextTable table({"largest then", "bytes", "shape"});
  for (const LiveBuffer& live : LargestAt(plan, account.peak_step, kLargestShown)) {
    table.AddRow({plan.placement(live.buffer).name, Bytes(live.size_bytes),
                  live.value.valid() ? ToString(plan.graph.value(live.value).shape) : ""});
  }
  return table.ToString();
}

}  // namespace

std::string PlanText(const Program& program, const OpRegistry& ops, const std::string& title,
                     int64_t budget_bytes) {
  const Plan& plan = program.plans.front();
  const MemoryAccount account = Account(plan);
  const GraphCost cost = CostOf(plan.graph, ops);
  std::string text = fmt::format("{}, {}: {} parameters\n\n", title, Name(plan.device),
                                 CountParameters(plan.graph));
  text += CategoryTable(account, plan.arena_bytes) + "\n" + LargestTable(plan, account) + "\n";
  text += fmt::format("arena {} ({} bytes), at least {} for this order; kept {}\n",
                      Bytes(program.arena_bytes), program.arena_bytes,
                      Bytes(plan.lower_bound_bytes), Bytes(account.kept_bytes));
  text += fmt::format("arithmetic {:.2f} GFLOP forward, {:.2f} GFLOP per step\n",
                      static_cast<double>(cost.forward_flops) / 1e9,
                      static_cast<double>(cost.step_flops) / 1e9);
  for (const Decision& decision : plan.decisions) {
    if (decision.pass == "kernels") text += fmt::format("{}: equal to rounding\n", decision.what);
  }
  const auto arena_bytes = static_cast<int64_t>(program.arena_bytes);
  if (budget_bytes > 0 && arena_bytes <= budget_bytes) {
    text += fmt::format("fits the budget of {}\n", FormatBytes(budget_bytes));
  }
  return text;
}

}  // namespace thimble
