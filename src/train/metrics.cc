#include "thimble/train/metrics.h"

#include <nlohmann/json.hpp>

#include "thimble/train/options.h"

namespace thimble {
namespace {

using Json = nlohmann::ordered_json;

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
        json[option.name] = Json::parse(value);
        break;
    }
  }
  return json;
}

void AddEvaluation(Json& json, const std::string& prefix, const Evaluation& evaluation) {
  if (evaluation.images == 0) return;
  json[prefix + "_loss"] = evaluation.loss;
  json[prefix + "_accuracy"] = evaluation.accuracy;
}

}  // namespace

std::string StepMetrics(int64_t step, double loss, double learning_rate) {
  return Json{{"step", step}, {"loss", loss}, {"lr", learning_rate}}.dump();
}

std::string EpochMetrics(const EpochReport& report, int64_t step) {
  Json json{{"epoch", report.epoch},
            {"step", step},
            {"train_loss", report.train_loss},
            {"train_accuracy", report.train_accuracy}};
  AddEvaluation(json, "validation", report.validation);
  AddEvaluation(json, "test", report.test);
  json["seconds"] = report.seconds;
  return json.dump();
}

std::string SummaryJson(const TrainSummary& summary, const TrainConfig& config) {
  Json json{{"run_folder", summary.run_folder},
            {"finished", summary.finished},
            {"steps", summary.steps},
            {"train_loss", summary.train_loss},
            {"train_accuracy", summary.train_accuracy},
            {"test_loss", summary.test_loss},
            {"test_accuracy", summary.test_accuracy},
            {"best_accuracy", summary.best_accuracy},
            {"best_epoch", summary.best_epoch},
            {"seconds", summary.seconds},
            {"examples_per_second", summary.images_per_second},
            {"parameters", summary.parameters},
            {"plain_arena_bytes", summary.plain_arena_bytes},
            {"arena_bytes", summary.arena_bytes},
            {"lower_bound_bytes", summary.lower_bound_bytes},
            {"planned_peak_bytes", summary.planned_peak_bytes},
            {"measured_peak_bytes", summary.measured_peak_bytes},
            {"arena_resident_bytes", summary.arena_resident_bytes},
            {"process_peak_bytes", summary.process_peak_bytes},
            {"heap_calls_in_steps", summary.heap_calls_in_steps},
            {"map_calls_in_steps", summary.map_calls_in_steps},
            {"device", summary.device},
            {"device_name", summary.device_name},
            {"math", summary.math},
            {"driver_bytes", summary.device_memory.driver_bytes},
            {"context_bytes", summary.device_memory.context_bytes},
            {"graph_bytes", summary.device_memory.graph_bytes},
            {"pinned_host_bytes", summary.device_memory.pinned_peak_bytes},
            {"device_allocations", summary.device_allocations},
            {"device_allocations_in_steps", summary.device_allocations_in_steps},
            {"simd", summary.simd},
            {"threads", summary.threads}};
  json["config"] = ConfigJson(config);
  return json.dump(1) + "\n";
}

}  // namespace thimble
