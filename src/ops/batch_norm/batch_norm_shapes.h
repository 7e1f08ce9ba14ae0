// Shape requirements that the batch-norm ops share.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/kernel.h"

namespace thimble {

// (C) for x of shape (..., C) with at least two dimensions.
Result<Shape> ChannelShape(const Shape& x);

// Each of the first inputs in `shapes`, named in order, must have the shape `channels`.
Result<void> RequireChannels(std::initializer_list<std::string_view> names,
                             std::span<const Shape> shapes, const Shape& channels);

// Shape rule of both gradient ops: x, gamma, mean, variance, dy -> dx, dgamma, dbeta.
Result<std::vector<Shape>> BatchNormGradShapes(const OpCall& call);

}  // namespace thimble
