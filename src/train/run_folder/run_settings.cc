#include "thimble/train/run_folder/run_settings.h"

#include <fmt/format.h>

#include "thimble/base/byte_size.h"
#include "thimble/base/crc64.h"
#include "thimble/base/json_member.h"
#include "thimble/base/quote_name.h"
#include "thimble/base/sealed_text.h"
#include "thimble/train/options/options.h"

namespace thimble {
namespace {

// Ignores the seal, which the copy in a run folder has and the original does not.
std::string IdentityOf(const std::string& model_text, const std::string& name) {
  if (model_text.empty()) return name;
  Crc64 checksum;
  checksum.Append(WithoutSeal(SealToml(model_text)));
  return "file " + FormatSeal(checksum.value());
}

Error OtherLength(const RunSettings& saved, const RunSettings& now) {
  if (now.steps < saved.steps) {
    return BadInput(fmt::format(
        "this run has {} steps, but {} were requested: a run can be made longer, but not shorter",
        saved.steps, now.steps));
  }
  return BadInput(
      fmt::format("this run has {} steps, but {} were requested: add --extend to make it longer",
                  saved.steps, now.steps));
}

}  // namespace

Result<int64_t> StepsOf(const TrainConfig& config, int64_t steps_per_epoch, int64_t runs_per_step) {
  // Runs are numbered, and progress is computed in doubles, which are exact up to 2^53; random
  // draws use 32 bits of the epoch.
  constexpr int64_t kMaxRuns = int64_t{1} << 53;
  constexpr int64_t kMaxEpochs = (int64_t{1} << 32) - 1;
  const bool by_steps = config.steps > 0;
  const std::optional<int64_t> steps =
      by_steps ? config.steps : CheckedMultiply(config.epochs, steps_per_epoch);
  if (steps && *steps / steps_per_epoch < kMaxEpochs) {
    const std::optional<int64_t> runs = CheckedMultiply(*steps, runs_per_step);
    if (runs && *runs <= kMaxRuns) return *steps;
  }
  return BadInput(fmt::format(
      "--{} {}: too long: a run has fewer than {} epochs and at most 2^53 parts of batches",
      by_steps ? "steps" : "epochs", by_steps ? config.steps : config.epochs, kMaxEpochs));
}

RunSettings SettingsOf(const TrainConfig& config, const std::string& model_text,
                       const std::string& data, int64_t steps) {
  RunSettings settings;
  settings.steps = steps;
  for (const Option& option : TrainOptions()) {
    if (option.decides_results) settings.values[option.name] = option.get(config);
  }
  settings.values["model"] = IdentityOf(model_text, config.model);
  settings.values["data"] = data;
  return settings;
}

Result<void> CheckSameSettings(const RunSettings& saved, const RunSettings& now, bool extend) {
  for (const auto& [name, value] : now.values) {
    const auto found = saved.values.find(name);
    const std::string before = found == saved.values.end() ? "" : found->second;
    if (before == value) continue;
    return BadInput(
        fmt::format("this run was started with different settings: --{} was '{}' and is now '{}'",
                    name, before, value));
  }
  const bool longer = now.steps > saved.steps;
  if (now.steps == saved.steps || (longer && extend)) return {};
  return OtherLength(saved, now);
}

std::string DescribeExtension(const Schedule& schedule, double base_rate,
                              const ScheduleSpan& before, const ScheduleSpan& after, int64_t step) {
  std::string text =
      fmt::format("extending this run from {} to {} steps; ", before.num_steps, after.num_steps);
  if (schedule.kind != Schedule::Kind::kCosine) {
    return text + "the learning rate is the same as in one run of this length";
  }
  return text +
         fmt::format(
             "the learning rate, which fell to 0 over {} steps, now falls over {}: {:.4g} at "
             "step {} instead of {:.4g}; this is not the same as one run of {} steps",
             before.num_steps, after.num_steps, LearningRate(schedule, after, base_rate, step),
             step + 1, LearningRate(schedule, before, base_rate, step), after.num_steps);
}

std::string ToJson(const RunSettings& settings) {
  return Json{{"steps", settings.steps}, {"values", settings.values}}.Dump();
}

Result<RunSettings> SettingsFromJson(const std::string& text) {
  const Result<Json> parsed = ParseJson(text);
  const Json json = parsed.ok() ? *parsed : Json();
  const Json* steps = json.Find("steps");
  const Json* values = json.Find("values");
  RunSettings settings;
  if (steps == nullptr || !FromJson(*steps, settings.steps) || settings.steps < 0 ||
      values == nullptr || !values->is_object()) {
    return BadInput("settings: expected an object with a number 'steps' and an object 'values'");
  }
  for (const auto& [name, value] : values->members()) {
    if (!FromJson(value, settings.values[name])) {
      return BadInput(fmt::format("settings: {}: expected a string", QuoteName(name)));
    }
  }
  return settings;
}

}  // namespace thimble
