#include "thimble/report/profile_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/report/text_table.h"
#include "thimble/report/units.h"

namespace thimble {
namespace {

std::string Milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }
double Giga(int64_t count) { return static_cast<double>(count) / 1e9; }
// A rate per second; empty if no time was measured.
std::string GigaPerSecond(int64_t count, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}", Giga(count) / seconds) : "";
}

// Shows the difference in bytes: rounded sizes may look equal.
std::string Verdict(size_t planned, size_t measured) {
  if (planned == measured) return "ok";
  return fmt::format("DIFFERS by {:+} B",
                     static_cast<int64_t>(measured) - static_cast<int64_t>(planned));
}

std::string Verdict(const CategoryBytes& planned, const CategoryBytes& measured) {
  // Categories may differ although their sums are equal.
  if (Total(planned) == Total(measured) && planned != measured) return "DIFFERS";
  return Verdict(Total(planned), Total(measured));
}

Ink InkOf(bool equal) { return equal ? Ink::kPlain : Ink::kBad; }

std::string HeadLine(const Profile& profile) {
  const bool on_cpu = !profile.host_may_allocate;
  return fmt::format("{}, batch {} on {} ({}{}): {} parameters, {} runs\n", profile.model,
                     profile.batch, profile.device_name, profile.target,
                     on_cpu ? fmt::format(", {} threads", profile.threads) : "",
                     CountText(profile.record.parameters), profile.timed_runs.size());
}

std::string CategoryTable(const Profile& profile, const TextStyle& style) {
  const MemoryAccount planned = PlannedAccount(profile);
  const size_t arena_bytes = profile.record.arena_bytes;
  const CategoryBytes measured = MeasuredAccount(profile).at_step[planned.peak_step];
  TextTable table({"at the peak", "planned", "measured", ""});
  table.AlignLeft(3);
  const auto add = [&](std::string_view name, size_t a, size_t b) {
    table.AddRow({std::string(name), BytesText(a), BytesText(b), Verdict(a, b)}, InkOf(a == b));
  };
  for (size_t index = 0; index < kNumCategories; ++index) {
    add(Name(static_cast<Category>(index)), planned.at_peak[index], measured[index]);
  }
  add("gaps", planned.gap_bytes, arena_bytes - Total(measured));
  add("arena", profile.arena_bytes, profile.allocated_bytes);
  return table.ToString(style);
}

std::vector<std::string> Cells(const OpProfile& op, double all_seconds) {
  return {op.op,
          fmt::format("{}", op.calls),
          Milliseconds(op.seconds),
          fmt::format("{:.1f} %", 100 * op.seconds / all_seconds),
          GigaPerSecond(op.flops, op.seconds),
          GigaPerSecond(op.moved_bytes, op.seconds)};
}

std::string OpTable(const Profile& profile, const TextStyle& style) {
  const std::vector<OpProfile> ops = ByOp(profile);
  const OpProfile total = Total(ops);
  TextTable table({"op", "calls", "ms", "share", "GFLOP/s", "GB/s"});
  for (const OpProfile& op : ops) table.AddRow(Cells(op, total.seconds));
  table.AddRow(Cells(total, total.seconds), Ink::kBold);
  return table.ToString(style);
}

std::string LayerTable(const Profile& profile, const TextStyle& style) {
  TextTable table({"layer, at the peak", "planned", "measured", "", "forward ms", "backward ms",
                   "update ms", "arithmetic", "model", "activations"});
  table.AlignLeft(3);
  for (const LayerProfile& row : ByLayer(profile)) {
    const CategoryBytes& planned = row.planned.at_peak;
    table.AddRow(
        {row.planned.name.empty() ? "(no layer)" : row.planned.name, BytesText(Total(planned)),
         BytesText(Total(row.measured)), Verdict(planned, row.measured),
         Milliseconds(row.forward_seconds), Milliseconds(row.backward_seconds),
         Milliseconds(row.update_seconds), FlopsText(row.planned.step_flops),
         BytesText(planned[static_cast<size_t>(Category::kModel)]),
         BytesText(planned[static_cast<size_t>(Category::kActivations)])},
        InkOf(planned == row.measured));
  }
  return table.ToString(style);
}

std::string ProgramTable(const Profile& profile, const TextStyle& style) {
  const std::vector<StepRecord>& steps = profile.record.steps;
  const MemoryAccount planned = PlannedAccount(profile);
  const MemoryAccount measured = MeasuredAccount(profile);
  TextTable table({"step", "phase", "op", "planned", "measured", "", "ms", "layer"});
  for (const size_t column : {1, 2, 5, 7}) table.AlignLeft(column);
  for (size_t i = 0; i < steps.size(); ++i) {
    table.AddRow(
        {fmt::format("{}", i), steps[i].phase, steps[i].op, BytesText(Total(planned.at_step[i])),
         BytesText(Total(measured.at_step[i])), Verdict(planned.at_step[i], measured.at_step[i]),
         Milliseconds(profile.op_seconds[i]), steps[i].layer},
        InkOf(planned.at_step[i] == measured.at_step[i]));
  }
  return table.ToString(style);
}

// The runs of a step, if it has more than one.
std::string RunsText(const Profile& profile) {
  if (profile.others.empty()) return "";
  std::string text =
      fmt::format("a step runs '{}' {} times", profile.record.name, profile.record.runs_per_step);
  for (const OtherPlan& other : profile.others) {
    text += fmt::format(", '{}' {}", other.record.name,
                        other.record.runs_per_step == 1
                            ? "once"
                            : fmt::format("{} times", other.record.runs_per_step));
  }
  return text + "\n";
}

std::string Totals(const Profile& profile) {
  const std::string predicted =
      profile.predicted_seconds > 0
          ? fmt::format(" (predicted {})", Milliseconds(profile.predicted_seconds))
          : "";
  std::string text = fmt::format(
      "step {} ms{}, {:.1f} {}/s; {:.2f} GFLOP per step, {} GFLOP/s\n",
      Milliseconds(profile.step_seconds), predicted, profile.examples_per_second(), profile.unit,
      Giga(profile.step_flops()), GigaPerSecond(profile.step_flops(), profile.step_seconds));
  text += RunsText(profile);
  text += fmt::format(
      "arena: {} bytes planned, {} allocated\n"
      "highest byte in use: {} planned, {} measured\n",
      profile.arena_bytes, profile.allocated_bytes, profile.planned_peak_bytes,
      profile.measured_peak_bytes);
  text += fmt::format("allocations during steps: {} on the heap, {} mappings, {} on the device\n",
                      profile.heap_calls_in_steps, profile.map_calls_in_steps,
                      profile.device_allocations_in_steps);
  return text;
}

std::string Conclusion(const Profile& profile) {
  const std::vector<std::string> differences = DifferencesOf(profile);
  if (differences.empty()) {
    return fmt::format("planned = measured in every category, in {} layers and {} steps\n",
                       ByLayer(profile).size(), profile.record.steps.size());
  }
  std::string text = "planned and measured differ:\n";
  for (const std::string& line : differences) text += "  " + line + "\n";
  return text;
}

}  // namespace

std::string ProfileText(const Profile& profile, const ProfileTables& tables,
                        const TextStyle& style) {
  std::string text = HeadLine(profile) + "\n";
  if (tables.program) text += ProgramTable(profile, style) + "\n";
  if (tables.layers) text += LayerTable(profile, style) + "\n";
  text += CategoryTable(profile, style) + "\n" + OpTable(profile, style) + "\n";
  return text + Totals(profile) + Conclusion(profile);
}

}  // namespace thimble
