// Shape requirements and costs that the batch-norm ops share.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// (C) for x of shape (..., C) with at least two dimensions.
Result<Shape> ChannelShape(const Shape& x);

// The shape of x's mean and variance: (C) if `group` is 0, otherwise (parts, C).
Result<Shape> StatisticsShape(const OpCall& call);

// Checks that the first inputs in `shapes`, with these names in order, all have this shape.
Result<void> RequireShapes(std::initializer_list<std::string_view> names,
                           std::span<const Shape> shapes, const Shape& expected);

// Shape rule of both gradient ops: x, gamma, beta, mean, variance, dy -> dx, dgamma, dbeta.
Result<std::vector<Shape>> BatchNormGradShapes(const OpCall& call);

// Cost: `flops` for each element of x, and `relu_flops` more if the op has ReLU.
FlopFunction PerElementAndRelu(int64_t flops, int64_t relu_flops);

}  // namespace thimble
