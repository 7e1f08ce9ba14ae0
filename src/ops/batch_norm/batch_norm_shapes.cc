#include "thimble/ops/batch_norm/batch_norm_shapes.h"

#include <fmt/format.h>

#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {

Result<Shape> ChannelShape(const Shape& x) {
  if (x.rank() < 2) {
    return BadInput(
        fmt::format("'x' has shape {}, expected at least 2 dimensions (..., C)", ToString(x)));
  }
  return Shape{x[x.rank() - 1]};
}

Result<Shape> StatisticsShape(const OpCall& call) {
  const Shape& x = call.inputs[0];
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(x));
  const int64_t group = call.attributes.Int("group");
  THIMBLE_TRY(RequireAtLeast("group", group, 0));
  if (group == 0) return channels;
  return Shape{SampleParts(x, call.attributes).parts, channels[0]};
}

Result<void> RequireShapes(std::initializer_list<std::string_view> names,
                           std::span<const Shape> shapes, const Shape& expected) {
  size_t index = 0;
  for (std::string_view name : names) {
    THIMBLE_TRY(RequireShape(name, shapes[index++], expected));
  }
  return {};
}

Result<std::vector<Shape>> BatchNormGradShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(x));
  THIMBLE_ASSIGN_OR_RETURN(const Shape statistics, StatisticsShape(call));
  THIMBLE_TRY(RequireShapes({"gamma", "beta"}, call.inputs.subspan(1), channels));
  THIMBLE_TRY(RequireShapes({"mean", "variance"}, call.inputs.subspan(3), statistics));
  THIMBLE_TRY(RequireShape("dy", call.inputs[5], x));
  return std::vector<Shape>{x, channels, channels};
}

FlopFunction PerElementAndRelu(int64_t flops, int64_t relu_flops) {
  return [=](const OpCall& call) {
    const int64_t relu = call.attributes.Int("relu") != 0 ? relu_flops : 0;
    return (flops + relu) * call.inputs[0].elements();
  };
}

}  // namespace thimble
