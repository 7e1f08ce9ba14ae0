// Shape requirements and costs that the batch-norm ops share.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// (C) for x of shape (..., C) with at least two dimensions.
Result<Shape> ChannelShape(const Shape& x);

// How the samples, the first dimension of x, are normalised: each part by statistics of its own.
// One part of all samples where attribute `group` is 0, otherwise parts of at most `group` samples.
NearlyEqualParts SampleParts(const Shape& x, int64_t group);
inline NearlyEqualParts SampleParts(const Shape& x, const Attributes& attributes) {
  return SampleParts(x, attributes.Int("group"));
}

// The shape of x's mean and variance: (C) where `group` is 0, otherwise (parts, C).
Result<Shape> StatisticsShape(const OpCall& call);

// Each of the first inputs in `shapes`, named in order, must have this shape.
Result<void> RequireShapes(std::initializer_list<std::string_view> names,
                           std::span<const Shape> shapes, const Shape& expected);

// Shape rule of both gradient ops: x, gamma, beta, mean, variance, dy -> dx, dgamma, dbeta.
Result<std::vector<Shape>> BatchNormGradShapes(const OpCall& call);

// Cost: `flops` for each element of x, and `relu_flops` more where the op has ReLU.
FlopFunction PerElementAndRelu(int64_t flops, int64_t relu_flops);

}  // namespace thimble
