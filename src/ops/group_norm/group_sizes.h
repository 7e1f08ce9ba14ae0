// The elements of x (B, ..., C) that belong to a group.
#pragma once

#include <algorithm>
#include <cstdint>

#include "thimble/tensor/shape.h"

namespace thimble {

// The channels of each sample are divided into consecutive equal groups.
struct GroupSizes {
  int64_t samples;
  int64_t rows;  // of a sample
  int64_t channels;
  int64_t groups;

  GroupSizes(const Shape& x, int64_t num_groups)
      : samples(x[0]), rows(1), channels(x[x.rank() - 1]), groups(num_groups) {
    for (size_t axis = 1; axis + 1 < x.rank(); ++axis) rows *= x[axis];
  }
  int64_t group_channels() const { return channels / groups; }
  // The divisor for means over a group.
  double count() const {
    return static_cast<double>(std::max<int64_t>(1, rows * group_channels()));
  }
  // Calls body(i, channel) for each element of a group.
  template <class Body>
  void ForEachElement(int64_t sample, int64_t group, const Body& body) const {
    for (int64_t row = sample * rows; row < (sample + 1) * rows; ++row) {
      for (int64_t c = group * group_channels(); c < (group + 1) * group_channels(); ++c) {
        body(row * channels + c, c);
      }
    }
  }
  // Calls body(sample, group, index in the statistics).
  template <class Body>
  void ForEachGroup(const Body& body) const {
    for (int64_t i = 0; i < samples * groups; ++i) body(i / groups, i % groups, i);
  }
};

}  // namespace thimble
