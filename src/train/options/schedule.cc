#include "thimble/train/options/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace thimble {
namespace {

bool ParseNumber(std::string_view text, double& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

bool ParseSteps(std::string_view text, Schedule& schedule) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  if (!ParseNumber(text.substr(colon + 1), schedule.factor) || schedule.factor < 0) return false;
  std::string_view list = text.substr(0, colon);
  double last = -1;
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    double epoch = 0;
    if (!ParseNumber(list.substr(0, comma), epoch) || epoch <= last) return false;
    schedule.epochs.push_back(last = epoch);
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
  }
  return true;
}

bool ParseInverseSqrt(std::string_view text, Schedule& schedule) {
  schedule = {Schedule::Kind::kInverseSqrt, {}, 1};
  return text.empty() || (text.starts_with(':') && ParseNumber(text.substr(1), schedule.start) &&
                          schedule.start >= 0);
}

}  // namespace

Result<Schedule> ParseSchedule(std::string_view text) {
  if (text == "constant") return Schedule{};
  if (text == "cosine") return Schedule{Schedule::Kind::kCosine, {}, 1};
  Schedule schedule{Schedule::Kind::kSteps, {}, 1};
  if (text.starts_with("steps:") && ParseSteps(text.substr(6), schedule)) return schedule;
  constexpr std::string_view kInverseSqrt = "inverse-sqrt";
  if (text.starts_with(kInverseSqrt) &&
      ParseInverseSqrt(text.substr(kInverseSqrt.size()), schedule)) {
    return schedule;
  }
  return BadInput(
      fmt::format("--schedule {}: expected constant, cosine, steps with increasing epochs and a "
                  "factor, for example steps:60,120,160:0.2, or inverse-sqrt with or without the "
                  "rate that it starts from, for example inverse-sqrt:1e-7",
                  text));
}

double LearningRate(const Schedule& schedule, const ScheduleSpan& span, double base, int64_t step) {
  const auto number = static_cast<double>(step + 1);
  if (step < span.warmup_steps) {
    const double above = base - schedule.start;
    return schedule.start + above * number / static_cast<double>(span.warmup_steps);
  }
  switch (schedule.kind) {
    case Schedule::Kind::kConstant:
      return base;
    case Schedule::Kind::kCosine: {
      const auto done = static_cast<double>(step - span.warmup_steps);
      const auto all = static_cast<double>(span.num_steps - span.warmup_steps);
      return all <= 0 ? base : base * 0.5 * (1 + std::cos(M_PI * done / all));
    }
    case Schedule::Kind::kInverseSqrt: {
      const auto peak = static_cast<double>(std::max<int64_t>(1, span.warmup_steps));
      return base * std::sqrt(peak / number);
    }
    case Schedule::Kind::kSteps: {
      const double epoch = static_cast<double>(step) / static_cast<double>(span.steps_per_epoch);
      double rate = base;
      for (double border : schedule.epochs) rate *= epoch >= border ? schedule.factor : 1;
      return rate;
    }
  }
  return base;
}

}  // namespace thimble
