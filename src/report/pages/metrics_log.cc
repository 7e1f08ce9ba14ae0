#include "thimble/report/pages/metrics_log.h"

#include <fmt/format.h>

#include <cmath>

#include "thimble/base/json.h"

namespace thimble {
namespace {

struct Member {
  const char* name;
  std::vector<CurvePoint> MetricsLog::*points;
};
constexpr Member kStepMembers[] = {
    {"loss", &MetricsLog::loss},
    {"lr", &MetricsLog::learning_rate},
    {"loss_scale", &MetricsLog::loss_scale},
    {"moved_weights", &MetricsLog::moved_weights},
    {"threshold", &MetricsLog::threshold},
};
constexpr Member kEpochMembers[] = {
    {"train_loss", &MetricsLog::train_loss},
    {"train_accuracy", &MetricsLog::train_accuracy},
    {"test_loss", &MetricsLog::test_loss},
    {"test_accuracy", &MetricsLog::test_accuracy},
    {"test_bleu", &MetricsLog::bleu},
    {"validation_loss", &MetricsLog::validation_loss},
    {"validation_accuracy", &MetricsLog::validation_accuracy},
};

// Appends the member's number to its points. Absent members and null (which stands for NaN and
// infinity) add no point.
Result<void> ReadMember(const Json& json, double step, const Member& member, MetricsLog& log) {
  const Json* found = json.Find(member.name);
  if (found == nullptr || found->is_null()) return {};
  if (!found->is_number()) return BadInput(fmt::format("{}: expected a number", member.name));
  const double value = found->number();
  if (std::isfinite(value)) (log.*member.points).push_back({step, value});
  return {};
}

// The same for a list with a number for each sparse layer.
Result<void> ReadActiveWeights(const Json& json, double step, MetricsLog& log) {
  constexpr const char* kName = "active_weights";
  const Json* found = json.Find(kName);
  if (found == nullptr) return {};
  if (!found->is_array()) return BadInput(fmt::format("{}: expected a list", kName));
  const Json& counts = *found;
  if (log.active_weights.empty()) log.active_weights.resize(counts.size());
  if (log.active_weights.size() != counts.size()) {
    return BadInput(fmt::format("{}: expected {} numbers, got {}", kName, log.active_weights.size(),
                                counts.size()));
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i].is_number()) return BadInput(fmt::format("{}: expected numbers", kName));
    log.active_weights[i].push_back({step, counts[i].number()});
  }
  return {};
}

// Steps are counted from 1 and never decrease.
Result<double> ReadStep(const Json& json, double previous) {
  constexpr uint64_t kMostSteps = uint64_t{1}
                                  << 53;  // a double represents all smaller integers exactly
  const Json* found = json.Find("step");
  const auto whole = found == nullptr ? std::nullopt : found->integer<uint64_t>();
  if (!whole || *whole > kMostSteps) return BadInput("step: expected a whole number, 0 or more");
  const auto step = static_cast<double>(*whole);
  if (step < previous) {
    return BadInput(fmt::format("step: expected {} or more, got {}", previous, step));
  }
  return step;
}

Result<void> ReadLine(std::string_view line, double& step, MetricsLog& log) {
  // Room for the active weights of some thousand layers; other lines have at most 200 bytes.
  constexpr size_t kMostBytes = 65536;
  if (line.size() > kMostBytes) {
    return BadInput(fmt::format("expected at most {} bytes", kMostBytes));
  }
  const Result<Json> parsed = ParseJson(line);
  if (!parsed.ok() || !parsed->is_object()) return BadInput("expected a JSON object");
  const Json& json = *parsed;
  THIMBLE_ASSIGN_OR_RETURN(step, ReadStep(json, step));
  if (!json.contains("epoch")) {
    for (const Member& member : kStepMembers) THIMBLE_TRY(ReadMember(json, step, member, log));
    return ReadActiveWeights(json, step, log);
  }
  for (const Member& member : kEpochMembers) THIMBLE_TRY(ReadMember(json, step, member, log));
  if (const Json* seconds = json.Find("seconds"); seconds != nullptr && seconds->is_number()) {
    log.seconds = seconds->number();
  }
  return {};
}

}  // namespace

Result<MetricsLog> MetricsFromLines(std::string_view text) {
  MetricsLog log;
  double step = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      log.last_line_torn = true;
      break;
    }
    if (auto read = ReadLine(text.substr(0, end), step, log); !read.ok()) {
      return WithContext(fmt::format("line {}", number), read.error());
    }
    text.remove_prefix(end + 1);
  }
  return log;
}

}  // namespace thimble
