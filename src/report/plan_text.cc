#include "thimble/report/plan_text.h"

#include <fmt/format.h>

#include "thimble/base/byte_size.h"
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

std::string LargestTable(const PlanRecord& plan, const MemoryAccount& account) {
  TextTable table({"largest then", "bytes", "shape"});
  for (const Holding& held : LargestAt(plan.holdings, account.peak_step, kLargestShown)) {
    table.AddRow({held.name, Bytes(held.size_bytes), held.shape});
  }
  return table.ToString();
}

}  // namespace

std::string PlanText(const PlanAnswer& answer) {
  const PlanRecord& plan = answer.plan();
  const MemoryAccount account = Account(plan);
  std::string text = fmt::format("{}, batch {}, {}: {} parameters\n\n", answer.model, answer.batch,
                                 plan.device, plan.parameters);
  text += CategoryTable(account, plan.arena_bytes) + "\n" + LargestTable(plan, account) + "\n";
  text += fmt::format("arena {} ({} bytes), at least {} for this order; kept {}\n",
                      Bytes(answer.record.arena_bytes), answer.record.arena_bytes,
                      Bytes(plan.lower_bound_bytes), Bytes(account.kept_bytes));
  text += fmt::format("arithmetic {:.2f} GFLOP forward, {:.2f} GFLOP per step\n",
                      static_cast<double>(plan.forward_flops) / 1e9,
                      static_cast<double>(plan.step_flops) / 1e9);
  for (const TechniqueRecord& technique : plan.techniques) {
    if (technique.name == "kernels") text += fmt::format("{}: equal to rounding\n", technique.done);
  }
  if (answer.budget_bytes > 0 && answer.fits()) {
    text += fmt::format("fits the budget of {}\n", FormatBytes(answer.budget_bytes));
  }
  return text;
}

}  // namespace thimble
