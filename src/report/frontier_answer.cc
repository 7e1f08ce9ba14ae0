#include "thimble/report/frontier_answer.h"

#include <fmt/format.h>

#include "thimble/base/json.h"
#include "thimble/report/known_peaks.h"
#include "thimble/report/text_table.h"
#include "thimble/report/units.h"
#include "thimble/train/step_time/op_times.h"

namespace thimble {
namespace {

double RatioOf(int64_t larger, int64_t smaller) {
  return static_cast<double>(larger) / static_cast<double>(smaller);
}

std::string TimeOf(const FrontierPoint& point) {
  return point.step_seconds > 0 ? FormatSeconds(point.step_seconds) : FlopsText(point.step_flops);
}

}  // namespace

std::string FrontierText(const FrontierAnswer& answer, const TextStyle& style) {
  const bool timed = answer.points.front().step_seconds > 0;
  const auto known = FindKnownPeak(answer.model, answer.batch);
  TextTable table({"arena", "plain plan", "PyTorch", timed ? "step" : "arithmetic", "accuracy",
                   "class", "options"});
  for (const size_t column : {5, 6}) table.AlignLeft(column);
  for (const FrontierPoint& point : answer.points) {
    const auto ratio = [&](int64_t bytes) {
      return fmt::format("{:.1f}x", RatioOf(bytes, point.arena_bytes));
    };
    table.AddRow({CountText(point.arena_bytes), ratio(answer.plain_arena_bytes),
                  known ? ratio(known->bytes) : "", TimeOf(point),
                  point.lost_points > 0 ? fmt::format("-{:.2f}", point.lost_points) : "same",
                  point.exactness, point.options});
  }
  std::string text = fmt::format("{}, batch {}, {}: from the plain plan to the smallest arena\n\n",
                                 answer.model, answer.batch, answer.device);
  text += table.ToString(style);
  text += timed ? "steps as predicted from ops that thimble calibrate measured"
                : "times are unknown; thimble calibrate measures this machine, once";
  return text + "; accuracy as expected, in points\n";
}

std::string ToJson(const FrontierAnswer& answer) {
  Json points = Json::EmptyArray();
  for (const FrontierPoint& point : answer.points) {
    Json json{
        {"arena_bytes", point.arena_bytes},
        {"to_plain", RatioOf(answer.plain_arena_bytes, point.arena_bytes)},
        {"predicted_step_ms", point.step_seconds > 0 ? Json(1e3 * point.step_seconds) : Json()},
        {"step_flops", point.step_flops},
        {"lost_points", point.lost_points},
        {"class", point.exactness},
        {"options", point.options}};
    if (const auto known = FindKnownPeak(answer.model, answer.batch)) {
      json["to_pytorch"] = RatioOf(known->bytes, point.arena_bytes);
    }
    points.push_back(std::move(json));
  }
  return Json{{"model", answer.model},
              {"batch", answer.batch},
              {"device", answer.device},
              {"plain_arena_bytes", answer.plain_arena_bytes},
              {"points", std::move(points)}}
             .Dump(1) +
         "\n";
}

}  // namespace thimble
