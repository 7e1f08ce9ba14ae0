#include "thimble/report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/base/byte_size.h"
#include "thimble/plan/layer_record.h"
#include "thimble/plan/pass.h"
#include "thimble/report/known_peaks.h"
#include "thimble/report/text_table.h"
#include "thimble/report/units.h"
#include "thimble/train/step_time/op_times.h"

namespace thimble {
namespace {

// Enough to show where the memory goes, few enough to need no scrolling.
constexpr size_t kLargestShown = 5;

std::string CategoryTable(const MemoryAccount& account, size_t arena_bytes,
                          const TextStyle& style) {
  const auto whole = static_cast<double>(arena_bytes);
  const CategoryBytes largest = LargestOf(account);
  TextTable table({"at the peak", "bytes", "share", "most at any step"});
  for (size_t index = 0; index < kNumCategories; ++index) {
    const size_t bytes = account.at_peak[index];
    table.AddRow({std::string(Name(static_cast<Category>(index))), BytesText(bytes),
                  ShareText(static_cast<double>(bytes), whole), BytesText(largest[index])});
  }
  table.AddRow({"gaps", BytesText(account.gap_bytes),
                ShareText(static_cast<double>(account.gap_bytes), whole), ""});
  table.AddRow({"arena", BytesText(arena_bytes), ShareText(whole, whole), ""}, Ink::kBold);
  return table.ToString(style);
}

// The step of the peak and its largest category.
std::string PeakText(const PlanRecord& plan, const MemoryAccount& account) {
  const size_t most = static_cast<size_t>(
      std::max_element(account.at_peak.begin(), account.at_peak.end()) - account.at_peak.begin());
  const double share =
      static_cast<double>(account.at_peak[most]) / static_cast<double>(plan.arena_bytes);
  std::string text = fmt::format("largest category: {}, {:.1f} % of the arena\n",
                                 Name(static_cast<Category>(most)), 100 * share);
  if (account.peak_step < plan.steps.size()) {
    const StepRecord& step = plan.steps[account.peak_step];
    text += fmt::format("the peak is at step {} (of 0 to {}): {} of {}, {}\n", account.peak_step,
                        plan.steps.size() - 1, step.op, step.layer, step.phase);
  }
  return text;
}

std::string LargestTable(const PlanRecord& plan, const MemoryAccount& account,
                         const TextStyle& style) {
  TextTable table({"largest at the peak", "bytes", "phase", "shape"});
  for (const size_t column : {2, 3}) table.AlignLeft(column);
  for (const Holding& held : LargestAt(plan.holdings, account.peak_step, kLargestShown)) {
    table.AddRow({held.name, BytesText(held.size_bytes),
                  held.phase.empty() ? "resident" : held.phase, held.shape});
  }
  return table.ToString(style);
}

std::string LayerTable(const ProgramRecord& record, const TextStyle& style) {
  TextTable table(
      {"layer", "activations", "model", "gradients", "optimizer", "transient", "GFLOP"});
  for (const LayerRecord& layer : LayersOf(record)) {
    const auto bytes = [&](Category category) {
      const size_t held = layer.at_peak[static_cast<size_t>(category)];
      return held > 0 ? BytesText(held) : "";
    };
    if (layer.name.empty()) continue;  // batches and ring: the row "data" above
    table.AddRow({layer.name, bytes(Category::kActivations), bytes(Category::kModel),
                  bytes(Category::kGradients), bytes(Category::kOptimizer),
                  bytes(Category::kTransient),
                  fmt::format("{:.3f}", static_cast<double>(layer.step_flops) / 1e9)});
  }
  return table.ToString(style);
}

std::string TotalsTable(const PlanAnswer& answer, const MemoryAccount& account,
                        const TextStyle& style) {
  const PlanRecord& plan = answer.plan();
  const auto arena = static_cast<double>(answer.arena_bytes());
  TextTable table({"total", "", "what"});
  table.AlignLeft(2);
  table.AddRow({"arena", BytesText(answer.record.arena_bytes),
                fmt::format("allocated, once: {} bytes", CountText(answer.arena_bytes()))},
               Ink::kBold);
  table.AddRow({"lower bound", BytesText(plan.lower_bound_bytes),
                "bytes alive at the peak: minimum for this order"});
  table.AddRow({"kept", BytesText(account.kept_bytes),
                "as counted in papers: no transient values, no data"});
  if (answer.plain_arena_bytes > 0) {
    table.AddRow({"plain plan", BytesText(static_cast<size_t>(answer.plain_arena_bytes)),
                  fmt::format("no optional technique: {} this arena",
                              RatioText(static_cast<double>(answer.plain_arena_bytes), arena))});
  }
  if (const auto known = FindKnownPeak(answer.model, answer.batch)) {
    table.AddRow({"PyTorch", BytesText(static_cast<size_t>(known->bytes)),
                  fmt::format("{}: {} this arena", known->what,
                              RatioText(static_cast<double>(known->bytes), arena))});
  }
  const GraphCost cost = StepCost(answer.record);
  table.AddRow({"forward", FlopsText(cost.forward_flops), "arithmetic"});
  table.AddRow({"whole step", FlopsText(cost.step_flops), "forward, backward and update"});
  if (answer.step_seconds > 0) {
    table.AddRow({"time of a step", FormatSeconds(answer.step_seconds),
                  "predicted from ops measured by thimble calibrate"});
  }
  return table.ToString(style);
}

// The difference to the arithmetic of the requested plan.
std::string AddedFlops(int64_t flops, int64_t asked_flops) {
  if (flops == asked_flops) return "same";
  return fmt::format("{}{}", flops > asked_flops ? "+" : "", FlopsText(flops - asked_flops));
}

// "lossy" of "lossy: batch-norm statistics per 10 samples".
std::string ClassWord(const std::string& exactness) {
  return exactness.substr(0, exactness.find(':'));
}

// The explanations of exactness, which do not fit into the table.
std::string ClassRemarks(const Savings& savings) {
  std::string text;
  for (const TechniqueSaving& technique : savings.offered) {
    if (ClassWord(technique.exactness) == technique.exactness) continue;
    text += fmt::format("{}, {}\n", technique.name, technique.exactness);
  }
  return text;
}

// The bytes that leaving a technique out adds.
std::string Grown(int64_t bytes) {
  return fmt::format("{}{}", bytes > 0 ? "+" : "", FormatBytes(bytes));
}

std::string SavingsTable(const Savings& savings, bool plain, const TextStyle& style) {
  TextTable table({"techniques", "arena", "saved", "left out", "class", "arithmetic"});
  for (const size_t column : {4, 5}) table.AlignLeft(column);
  const auto total = [&](const std::string& name, int64_t arena_bytes, int64_t from_bytes) {
    table.AddRow(
        {name, FormatBytes(arena_bytes), FormatBytes(from_bytes - arena_bytes), "", "", ""},
        Ink::kBold);
  };
  const auto each = [&](const std::vector<TechniqueSaving>& techniques, std::string_view form,
                        int64_t from_bytes, int64_t all_bytes) {
    for (const TechniqueSaving& technique : techniques) {
      table.AddRow(
          {fmt::format(fmt::runtime(form), technique.name), FormatBytes(technique.arena_bytes),
           FormatBytes(from_bytes - technique.arena_bytes),
           Grown(technique.without_arena_bytes - all_bytes), ClassWord(technique.exactness),
           AddedFlops(technique.step_flops, savings.asked_step_flops)});
    }
  };
  table.AddRow({"none of these", FormatBytes(savings.bare_arena_bytes), "", "", "", ""});
  each(savings.always, "{} alone", savings.bare_arena_bytes, savings.asked_arena_bytes);
  total(plain ? "all: plain plan" : "all: as requested", savings.asked_arena_bytes,
        savings.bare_arena_bytes);
  each(savings.offered, "{}", savings.asked_arena_bytes, savings.together_arena_bytes);
  if (savings.offered.size() > 1) {
    total("all options", savings.together_arena_bytes, savings.asked_arena_bytes);
  }
  return table.ToString(style) + ClassRemarks(savings);
}

std::string SmallestTable(const PlanAnswer& answer, const TextStyle& style) {
  const Savings& savings = *answer.savings;
  TextTable table({"smallest, --recompute optimal", "arena", "reduction", "arithmetic"});
  table.AlignLeft(3);
  for (const SmallestArena& arena : answer.smallest) {
    table.AddRow({arena.microbatch == 0 ? "whole batch"
                                        : fmt::format("with --microbatch {}", arena.microbatch),
                  FormatBytes(arena.arena_bytes),
                  RatioText(static_cast<double>(answer.plain_arena_bytes),
                            static_cast<double>(arena.arena_bytes)),
                  AddedFlops(arena.step_flops, savings.asked_step_flops)});
  }
  return table.ToString(style);
}

std::string AddedSeconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + FormatSeconds(std::abs(seconds));
}

std::string ChoiceTable(const BudgetChoice& choice, const TextStyle& style) {
  TextTable table({"chosen for the budget", "frees", "time", "accuracy", "class"});
  table.AlignLeft(4);
  for (const ChosenLever& lever : choice.levers) {
    table.AddRow({lever.option, FormatBytes(lever.freed_bytes),
                  choice.step_seconds > 0 ? AddedSeconds(lever.added_seconds) : "unknown",
                  lever.lost_points > 0 ? fmt::format("-{:.2f}", lever.lost_points) : "same",
                  lever.exactness});
  }
  std::string text = table.ToString(style);
  if (choice.threads > 0) text += fmt::format("--threads {}: more do not fit\n", choice.threads);
  text +=
      fmt::format("down to {} nothing else has to change{}\n", FormatBytes(choice.smallest_bytes),
                  choice.beyond.empty() ? ", and less is not possible"
                                        : "; less needs " + choice.beyond + " first");
  if (choice.step_seconds <= 0) {
    text += "times are unknown; thimble calibrate measures this machine, once\n";
  }
  return text;
}

std::string BudgetText(const PlanAnswer& answer, const TextStyle& style) {
  if (answer.budget_bytes <= 0) return "";
  const std::string budget = FormatBytes(answer.budget_bytes);
  if (answer.fits()) {
    return (answer.choice ? ChoiceTable(*answer.choice, style) : "") +
           style.Paint(Ink::kGood, fmt::format("fits the budget of {}", budget)) + "\n";
  }
  std::string text =
      style.Paint(Ink::kBad, fmt::format("does not fit: the budget of {} is exceeded by {}", budget,
                                         FormatBytes(answer.arena_bytes() - answer.budget_bytes))) +
      "\n";
  const auto line = [](std::string_view what, const Advice& advice) {
    return fmt::format("{} {}: {}{}{}\n", what, advice.options, FormatBytes(advice.arena_bytes),
                       advice.exactness.empty() ? "" : ", ", advice.exactness);
  };
  for (const Advice& fitting : answer.advice.fitting) text += line("would fit:", fitting);
  if (answer.advice.smallest) {
    text += line("none of the options tried fits; the smallest:", *answer.advice.smallest);
  }
  return text;
}

// A remark on a technique that changes results; empty if it keeps every bit.
std::string TechniqueLine(const TechniqueRecord& technique) {
  if (technique.name == "kernels") return fmt::format("{}: equal up to rounding\n", technique.done);
  if (technique.exactness == Name(Exactness::kSameBits)) return {};
  return fmt::format("{}, {}: {}\n", technique.name, technique.exactness, technique.done);
}

}  // namespace

std::string PlanText(const PlanAnswer& answer, const TextStyle& style) {
  const PlanRecord& plan = answer.plan();
  const MemoryAccount account = Account(plan);
  std::string text = style.Paint(Ink::kBold, fmt::format("{}, batch {}, {}", answer.model,
                                                         answer.batch, plan.device)) +
                     fmt::format(": {} parameters\n\n", CountText(plan.parameters));
  text += CategoryTable(account, plan.arena_bytes, style) + PeakText(plan, account) + "\n";
  text += LargestTable(plan, account, style) + "\n";
  if (answer.with_layers) text += LayerTable(answer.record, style) + "\n";
  text += TotalsTable(answer, account, style);
  if (answer.savings)
    text += fmt::format("\n{}", SavingsTable(*answer.savings, answer.plain, style));
  if (answer.savings && !answer.smallest.empty()) {
    text += fmt::format("\n{}", SmallestTable(answer, style));
  }
  for (const TechniqueRecord& technique : plan.techniques) text += TechniqueLine(technique);
  if (answer.budget_bytes > 0) text += fmt::format("\n{}", BudgetText(answer, style));
  return text;
}

}  // namespace thimble
