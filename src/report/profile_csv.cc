#include "thimble/report/profile_csv.h"

#include <fmt/format.h>

#include "thimble/report/csv.h"

namespace thimble {
namespace {

// "planned_model_bytes,measured_model_bytes,…"
std::string CategoryHeader() {
  std::string header;
  for (size_t index = 0; index < kNumCategories; ++index) {
    const std::string_view name = Name(static_cast<Category>(index));
    header +=
        fmt::format("{}planned_{}_bytes,measured_{}_bytes", index == 0 ? "" : ",", name, name);
  }
  return header;
}

std::string CategoryCells(const CategoryBytes& planned, const CategoryBytes& measured) {
  std::string cells;
  for (size_t index = 0; index < kNumCategories; ++index) {
    cells += fmt::format("{}{},{}", index == 0 ? "" : ",", planned[index], measured[index]);
  }
  return cells;
}

}  // namespace

std::string CategoriesCsv(const Profile& profile) {
  const MemoryAccount planned = PlannedAccount(profile);
  const CategoryBytes measured = MeasuredAccount(profile).at_step[planned.peak_step];
  std::string text = "category,planned_bytes,measured_bytes\n";
  for (size_t index = 0; index < kNumCategories; ++index) {
    text += fmt::format("{},{},{}\n", Name(static_cast<Category>(index)), planned.at_peak[index],
                        measured[index]);
  }
  return text + fmt::format("gaps,{},{}\n", planned.gap_bytes,
                            profile.record.arena_bytes - Total(measured));
}

std::string LayersCsv(const Profile& profile) {
  std::string text =
      fmt::format("layer,{},forward_ms,backward_ms,update_ms,flops\n", CategoryHeader());
  for (const LayerProfile& row : ByLayer(profile)) {
    text +=
        fmt::format("{},{},{},{},{},{}\n", CsvField(row.planned.name),
                    CategoryCells(row.planned.at_peak, row.measured), row.forward_seconds * 1e3,
                    row.backward_seconds * 1e3, row.update_seconds * 1e3, row.planned.step_flops);
  }
  return text;
}

std::string ProgramCsv(const Profile& profile) {
  const MemoryAccount planned = PlannedAccount(profile);
  const MemoryAccount measured = MeasuredAccount(profile);
  std::string text =
      fmt::format("step,phase,op,kernel,layer,{},ms,flops,moved_bytes\n", CategoryHeader());
  for (size_t i = 0; i < profile.record.steps.size(); ++i) {
    const StepRecord& step = profile.record.steps[i];
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", i, step.phase, CsvField(step.op),
                        CsvField(step.kernel), CsvField(step.layer),
                        CategoryCells(planned.at_step[i], measured.at_step[i]),
                        profile.op_seconds[i] * 1e3, step.flops, step.moved_bytes);
  }
  return text;
}

}  // namespace thimble
