#include "thimble/report/profile_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/byte_size.h"
#include "thimble/report/text_table.h"

namespace thimble {
namespace {

std::string Bytes(size_t bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }
std::string Milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }
double Giga(int64_t count) { return static_cast<double>(count) / 1e9; }
// Of something per second; nothing where it took no time.
std::string GigaPerSecond(int64_t count, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}", Giga(count) / seconds) : "";
}

// Rounded numbers may look alike where bytes are not.
std::string Verdict(size_t planned, size_t measured) {
  if (planned == measured) return "ok";
  return fmt::format("DIFFERS by {:+} B",
                     static_cast<int64_t>(measured) - static_cast<int64_t>(planned));
}

std::string Verdict(const CategoryBytes& planned, const CategoryBytes& measured) {
  // Two categories may differ and their sum not.
  if (Total(planned) == Total(measured) && planned != measured) return "DIFFERS";
  return Verdict(Total(planned), Total(measured));
}

std::string HeadLine(const Profile& profile) {
  const bool on_cpu = !profile.host_may_allocate;
  return fmt::format("{}, batch {} on {} ({}{}): {} parameters, {} runs\n", profile.model,
                     profile.batch, profile.device_name, profile.target,
                     on_cpu ? fmt::format(", {} threads", profile.threads) : "",
                     profile.record.parameters, profile.timed_runs.size());
}

std::string CategoryTable(const Profile& profile) {
  const MemoryAccount planned = PlannedAccount(profile);
  const size_t arena_bytes = profile.record.arena_bytes;
  const CategoryBytes measured = MeasuredAccount(profile).at_step[planned.peak_step];
  TextTable table({"at the peak", "planned", "measured", ""});
  const auto add = [&](std::string_view name, size_t a, size_t b) {
    table.AddRow({std::string(name), Bytes(a), Bytes(b), Verdict(a, b)});
  };
  for (size_t index = 0; index < kNumCategories; ++index) {
    add(Name(static_cast<Category>(index)), planned.at_peak[index], measured[index]);
  }
  add("gaps", planned.gap_bytes, arena_bytes - Total(measured));
  add("arena", profile.arena_bytes, profile.allocated_bytes);
  return table.ToString();
}

std::vector<std::string> Cells(const OpProfile& op, double all_seconds) {
  return {op.op,
          fmt::format("{}", op.calls),
          Milliseconds(op.seconds),
          fmt::format("{:.1f} %", 100 * op.seconds / all_seconds),
          GigaPerSecond(op.flops, op.seconds),
          GigaPerSecond(op.moved_bytes, op.seconds)};
}

std::string OpTable(const Profile& profile) {
  const std::vector<OpProfile> ops = ByOp(profile);
  const OpProfile total = Total(ops);
  TextTable table({"op", "calls", "ms", "share", "GFLOP/s", "GB/s"});
  for (const OpProfile& op : ops) table.AddRow(Cells(op, total.seconds));
  table.AddRow(Cells(total, total.seconds));
  return table.ToString();
}

std::string LayerTable(const Profile& profile) {
  TextTable table({"layer, at the peak", "model", "activations", "others", "planned", "measured",
                   "", "forward ms", "backward ms", "update ms", "GFLOP"});
  for (const LayerProfile& row : ByLayer(profile)) {
    const size_t model = row.planned[static_cast<size_t>(Category::kModel)];
    const size_t activations = row.planned[static_cast<size_t>(Category::kActivations)];
    table.AddRow({row.layer.empty() ? "(no layer)" : row.layer, Bytes(model), Bytes(activations),
                  Bytes(Total(row.planned) - model - activations), Bytes(Total(row.planned)),
                  Bytes(Total(row.measured)), Verdict(row.planned, row.measured),
                  Milliseconds(row.forward_seconds), Milliseconds(row.backward_seconds),
                  Milliseconds(row.update_seconds), fmt::format("{:.3f}", Giga(row.flops))});
  }
  return table.ToString();
}

// The words of a step form one column, so that they are aligned left.
std::string ProgramTable(const Profile& profile) {
  const std::vector<StepRecord>& steps = profile.record.steps;
  size_t op_width = 2;
  for (const StepRecord& step : steps) op_width = std::max(op_width, step.op.size());
  const auto words = [&](std::string_view number, std::string_view phase, std::string_view op,
                         std::string_view layer) {
    return fmt::format("{:>4}  {:<8}  {:<{}}  {}", number, phase, op, op_width, layer);
  };
  const MemoryAccount planned = PlannedAccount(profile);
  const MemoryAccount measured = MeasuredAccount(profile);
  TextTable table({words("step", "phase", "op", "layer"), "planned", "measured", "", "ms"});
  for (size_t i = 0; i < steps.size(); ++i) {
    table.AddRow({words(fmt::format("{}", i), steps[i].phase, steps[i].op, steps[i].layer),
                  Bytes(Total(planned.at_step[i])), Bytes(Total(measured.at_step[i])),
                  Verdict(planned.at_step[i], measured.at_step[i]),
                  Milliseconds(profile.op_seconds[i])});
  }
  return table.ToString();
}

std::string Totals(const Profile& profile) {
  std::string text = fmt::format("step {} ms, {:.1f} images/s; {:.2f} GFLOP per step, {} GFLOP/s\n",
                                 Milliseconds(profile.step_seconds), profile.images_per_second(),
                                 Giga(profile.record.step_flops),
                                 GigaPerSecond(profile.record.step_flops, profile.step_seconds));
  text += fmt::format(
      "arena {} bytes planned, {} allocated; highest byte in use {} planned, {} "
      "measured\n",
      profile.arena_bytes, profile.allocated_bytes, profile.planned_peak_bytes,
      profile.measured_peak_bytes);
  text += fmt::format("allocations in steps: {} on the heap, {} mappings, {} of the device\n",
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

std::string ProfileText(const Profile& profile, const ProfileTables& tables) {
  std::string text = HeadLine(profile) + "\n";
  if (tables.program) text += ProgramTable(profile) + "\n";
  if (tables.layers) text += LayerTable(profile) + "\n";
  text += CategoryTable(profile) + "\n" + OpTable(profile) + "\n";
  return text + Totals(profile) + Conclusion(profile);
}

}  // namespace thimble
