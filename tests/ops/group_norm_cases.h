// Calls of the group-norm ops, for their tests.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/support/op_check.h"

namespace thimble {

inline int64_t Channels(const Shape& x) { return x[x.rank() - 1]; }

// All elements of a group are in its sums, all rows of a channel in those of gamma and beta.
inline double LongestSum(const Shape& x, int64_t groups) {
  const double per_sample = x[0] == 0 ? 0 : static_cast<double>(x.elements() / x[0]);
  const double rows = Channels(x) == 0 ? 0 : static_cast<double>(x.elements() / Channels(x));
  return std::max({1.0, per_sample / static_cast<double>(groups), rows});
}

inline OpCase GroupNormCase(const Shape& x, int64_t groups) {
  const Shape channels{Channels(x)};
  return {.op = "group_norm",
          .inputs = {x, channels, channels},
          .attributes = {{"groups", groups}},
          .positive_inputs = {1},
          .shared_sum_size = LongestSum(x, groups)};
}

inline OpCase GroupNormApplyCase(const Shape& x, int64_t groups) {
  OpCase op_case = GroupNormCase(x, groups);
  op_case.op = "group_norm_apply";
  op_case.inputs.insert(op_case.inputs.end(), 2, Shape{x[0], groups});
  op_case.positive_inputs = {1, 4};
  // Successive roundings: adding epsilon, root, quotient, difference, product, adding beta.
  op_case.shared_sum_size = 6;
  return op_case;
}

inline OpCase GroupNormGradCase(const Shape& x, int64_t groups) {
  OpCase op_case = GroupNormApplyCase(x, groups);
  op_case.op = "group_norm_grad";
  op_case.inputs.push_back(x);
  op_case.shared_sum_size = LongestSum(x, groups);
  return op_case;
}

inline OpCase GroupNormGradAddCase(const Shape& x, int64_t groups) {
  OpCase op_case = GroupNormGradCase(x, groups);
  op_case.op = "group_norm_grad_add";
  op_case.inputs.push_back(x);
  return op_case;
}

inline OpCase WithRelu(OpCase op_case) {
  op_case.attributes.Set("relu", int64_t{1});
  return op_case;
}

struct GroupedShape {
  Shape x;
  int64_t groups;
};

// Few and many samples, narrow and wide groups, one and several chunks of a sample.
inline const GroupedShape kGroupedShapes[] = {
    {{1, 2}, 1},           {{2, 6}, 3},         {{5, 3, 1}, 1},       {{3, 5, 7, 3}, 3},
    {{2, 4, 5, 17}, 1},    {{9, 3, 3, 33}, 11}, {{2, 16, 16, 64}, 8}, {{13, 8, 8, 32}, 4},
    {{2, 5, 7, 300}, 25},  {{3, 7, 7, 12}, 2},  {{1, 48, 48, 16}, 2}, {{2, 40, 40, 28}, 4},
    {{0, 4, 4, 4}, 2},     {{2, 0, 3, 4}, 2},   {{3, 2, 2, 0}, 1},    {{2, 3, 1100}, 1},
    {{1, 60, 60, 10}, 10}, {{2, 2, 2, 2056}, 2}};

}  // namespace thimble
