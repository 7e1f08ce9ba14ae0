#include "thimble/train/run_folder/metrics.h"

#include <fmt/format.h>

#include <concepts>

#include "thimble/base/json_member.h"
#include "thimble/base/sealed_text.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

Json ConfigJson(const TrainConfig& config) {
  Json json;
  for (const Option& option : TrainOptions()) {
    const std::string value = option.get(config);
    switch (option.kind) {
      case OptionKind::kText:
        json[option.name] = value;
        break;
      case OptionKind::kSwitch:
        json[option.name] = value == "true";
        break;
      case OptionKind::kInteger:
      case OptionKind::kSize:
      case OptionKind::kNumber:
        json[option.name] = value.empty() ? Json() : ParseJson(value).value();
        break;
    }
  }
  return json;
}

void AddEvaluation(Json& json, const std::string& prefix, const Evaluation& evaluation) {
  if (evaluation.count == 0) return;
  json[prefix + "_loss"] = evaluation.loss;
  json[prefix + "_accuracy"] = evaluation.accuracy;
  if (evaluation.bleu) json[prefix + "_bleu"] = *evaluation.bleu;
}

// Calls visit(name, member) for every member, for both reading and writing.
template <class Summary, class Visit>
void VisitSummary(Summary& summary, const Visit& visit) {
  visit("run_folder", summary.run_folder);
  visit("finished", summary.finished);
  visit("stop_signal", summary.stop_signal);
  visit("steps", summary.steps);
  visit("num_steps", summary.num_steps);
  visit("train_loss", summary.train_loss);
  visit("train_accuracy", summary.train_accuracy);
  visit("test_loss", summary.test_loss);
  visit("test_accuracy", summary.test_accuracy);
  visit("bleu", summary.bleu);
  visit("best_accuracy", summary.best_accuracy);
  visit("best_epoch", summary.best_epoch);
  visit("loss_scale", summary.loss_scale);
  visit("skipped_updates", summary.skipped_updates);
  visit("seconds", summary.seconds);
  visit("unit", summary.unit);
  visit("examples_per_second", summary.examples_per_second);
  visit("parameters", summary.parameters);
  visit("plain_arena_bytes", summary.plain_arena_bytes);
  visit("arena_bytes", summary.arena_bytes);
  visit("lower_bound_bytes", summary.lower_bound_bytes);
  visit("planned_peak_bytes", summary.planned_peak_bytes);
  visit("measured_peak_bytes", summary.measured_peak_bytes);
  visit("arena_resident_bytes", summary.arena_resident_bytes);
  visit("process_peak_bytes", summary.process_peak_bytes);
  visit("heap_calls_in_steps", summary.heap_calls_in_steps);
  visit("map_calls_in_steps", summary.map_calls_in_steps);
  visit("device", summary.device);
  visit("device_name", summary.device_name);
  visit("math", summary.math);
  visit("driver_bytes", summary.device_memory.driver_bytes);
  visit("context_bytes", summary.device_memory.context_bytes);
  visit("graph_bytes", summary.device_memory.graph_bytes);
  visit("pinned_host_bytes", summary.device_memory.pinned_peak_bytes);
  visit("device_allocations", summary.device_allocations);
  visit("device_allocations_in_steps", summary.device_allocations_in_steps);
  visit("simd", summary.simd);
  visit("threads", summary.threads);
  visit("metrics_bytes", summary.metrics_bytes);
  visit("metrics_checksum", summary.metrics_checksum);
  visit("command", summary.command);
  visit("continue_command", summary.continue_command);
  visit("version", summary.version);
}

// All integers of a summary are counts or sizes.
template <class T>
bool Convert(const Json& json, T& member) {
  if constexpr (std::integral<T>) return FromJson(json, member) && member >= T{};
  return FromJson(json, member);
}
template <class T>
const char* Expected(const T& member) {
  if constexpr (std::signed_integral<T>) return "a whole number, 0 or more";
  return ExpectedOf(member);
}

// Members that summaries of older versions do not have.
bool MayBeMissing(std::string_view name) {
  return name == "loss_scale" || name == "skipped_updates" || name == "command" ||
         name == "version" || name == "unit" || name == "stop_signal" || name == "num_steps" ||
         name == "metrics_bytes" || name == "metrics_checksum" || name == "continue_command";
}

}  // namespace

std::string StepMetrics(const StepReport& report) {
  Json json{{"step", report.step}, {"loss", report.loss}, {"lr", report.learning_rate}};
  if (report.loss_scale) {
    json["loss_scale"] = *report.loss_scale;
    json["skipped_updates"] = report.skipped_updates;
  }
  return json.Dump();
}

std::string RewiringMetrics(const RewiringReport& report, int64_t step) {
  Json json{{"step", step}, {"moved_weights", report.moved}, {"threshold", report.threshold}};
  json["active_weights"] = Json::Array(report.active.begin(), report.active.end());
  return json.Dump();
}

std::string EpochMetrics(const EpochReport& report, int64_t step) {
  Json json{{"epoch", report.epoch},
            {"step", step},
            {"train_loss", report.train_loss},
            {"train_accuracy", report.train_accuracy}};
  if (report.averaged_epochs > 0) json["averaged_epochs"] = report.averaged_epochs;
  AddEvaluation(json, "validation", report.validation);
  AddEvaluation(json, "test", report.test);
  json["seconds"] = report.seconds;
  return json.Dump();
}

std::string SummaryJson(const TrainSummary& summary, const TrainConfig& config) {
  Json json;
  VisitSummary(summary, [&](const char* name, const auto& member) { json[name] = ToJson(member); });
  json["config"] = ConfigJson(config);
  return SealJson(json.Dump(1));
}

Result<TrainSummary> SummaryFromJson(std::string_view text) {
  THIMBLE_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  if (!json.is_object()) return BadInput("is not a JSON object");
  TrainSummary summary;
  std::string error;
  VisitSummary(summary, [&](const char* name, auto& member) {
    const Json* found = json.Find(name);
    if (found == nullptr && MayBeMissing(name)) return;
    if (found != nullptr && Convert(*found, member)) return;
    if (error.empty()) error = fmt::format("{}: expected {}", name, Expected(member));
  });
  if (!error.empty()) return BadInput(error);
  summary.json = text;
  return summary;
}

Result<TrainSummary> ReadSummary(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadSealedFile(path, kMaxSummaryBytes));
  auto summary = SummaryFromJson(text);
  if (!summary.ok()) return WithContext(path, summary.error());
  return summary;
}

}  // namespace thimble
