#include "thimble/train/planning/frontier.h"

#include <algorithm>
#include <utility>

#include "thimble/plan/pass.h"
#include "thimble/train/planning/budget_search.h"

namespace thimble {
namespace {

// Time as predicted or, where it is unknown, arithmetic.
std::pair<double, int64_t> WorkOf(const FrontierPoint& point) {
  return {point.step_seconds, point.step_seconds > 0 ? 0 : point.step_flops};
}

std::pair<Exactness, double> LossOf(const FrontierPoint& point) {
  return {ClassIn(point.exactness), point.lost_points};
}

// Whether `other` is at least as good in everything. (No two points are equal.)
bool IsWorse(const FrontierPoint& point, const FrontierPoint& other) {
  return other.arena_bytes <= point.arena_bytes && WorkOf(other) <= WorkOf(point) &&
         LossOf(other) <= LossOf(point);
}

FrontierPoint PointOf(const BudgetChoice& choice, const PlanSize& size) {
  return {.arena_bytes = size.arena_bytes,
          .step_seconds = size.step_seconds,
          .step_flops = size.step_flops,
          .lost_points = choice.lost_points(),
          .exactness = std::string(Name(choice.exactness())),
          .options = choice.options()};
}

}  // namespace

Result<std::vector<FrontierPoint>> FindFrontier(const TrainConfig& config, const PlanSizer& sizer,
                                                double fraction) {
  std::vector<FrontierPoint> points;
  TrainConfig tried = config;
  tried.budget_bytes = 0;
  THIMBLE_ASSIGN_OR_RETURN(const PlanSize plain, sizer.Of(tried));
  for (int64_t budget = plain.arena_bytes; budget > 0;) {
    tried.budget_bytes = budget;
    const Result<BudgetChoice> choice = ChooseForBudget(tried, sizer);
    if (!choice.ok() && choice.error().kind != ErrorKind::kDoesNotFit) return choice.error();
    if (!choice.ok()) break;
    THIMBLE_ASSIGN_OR_RETURN(const PlanSize size, sizer.Of(choice->config));
    points.push_back(PointOf(*choice, size));
    budget = std::min(size.arena_bytes - 1,
                      static_cast<int64_t>(fraction * static_cast<double>(budget)));
    // The last point is the floor.
    const bool is_last = !choice->levers.empty() && choice->beyond.empty();
    if (is_last && budget < choice->smallest_bytes) {
      budget = choice->smallest_bytes < size.arena_bytes ? choice->smallest_bytes : 0;
    }
  }
  std::vector<FrontierPoint> frontier;
  for (const FrontierPoint& point : points) {
    const auto worse_than = [&](const FrontierPoint& other) {
      return &other != &point && IsWorse(point, other);
    };
    const bool is_first = &point == &points.front();
    if (is_first || std::none_of(points.begin(), points.end(), worse_than)) {
      frontier.push_back(point);
    }
  }
  return frontier;
}

}  // namespace thimble
