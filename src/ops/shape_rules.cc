#include "thimble/ops/shape_rules.h"

#include <fmt/format.h>

#include "thimble/ops/update_rounding.h"

namespace thimble {

Result<void> RequireShape(std::string_view port, const Shape& actual, const Shape& expected) {
  if (actual == expected) return {};
  return BadInput(
      fmt::format("'{}' has shape {}, expected {}", port, ToString(actual), ToString(expected)));
}

Result<void> RequireRank(std::string_view port, const Shape& actual, size_t rank,
                         std::string_view letters) {
  if (actual.rank() == rank) return {};
  return BadInput(fmt::format("'{}' has shape {}, expected {} dimensions {}", port,
                              ToString(actual), rank, letters));
}

Result<void> RequireAtLeast(std::string_view attribute, int64_t actual, int64_t least) {
  if (actual >= least) return {};
  return BadInput(fmt::format("{} is {}, expected at least {}", attribute, actual, least));
}

Result<void> RequireProjection(const Shape& x, const Shape& w) {
  THIMBLE_TRY(RequireRank("w", w, 2, "(V, C)"));
  THIMBLE_TRY(RequireShape("w", w, Shape{w[0], x[2]}));
  THIMBLE_TRY(RequireAtLeast("vocabulary", w[0], 1));
  return RequireAtLeast("number of channels", w[1], 1);
}

Result<void> RequireTapLogits(const Shape& x, const Shape& logits, int64_t heads) {
  THIMBLE_TRY(RequireAtLeast("heads", heads, 1));
  if (x[2] % heads != 0) {
    return BadInput(fmt::format("{} channels cannot be divided among {} heads", x[2], heads));
  }
  THIMBLE_TRY(RequireShape("logits", logits, Shape{x[0], x[1], logits[2]}));
  if (logits[2] > 0 && logits[2] % heads == 0) return {};
  return BadInput(
      fmt::format("'logits' has shape {}, expected one or more taps for each of {} heads",
                  ToString(logits), heads));
}

ShapeFunction AllSameShape(std::vector<std::string> inputs, size_t num_outputs) {
  return
      [inputs = std::move(inputs), num_outputs](const OpCall& call) -> Result<std::vector<Shape>> {
        for (size_t i = 1; i < inputs.size(); ++i) {
          THIMBLE_TRY(RequireShape(inputs[i], call.inputs[i], call.inputs[0]));
        }
        return std::vector<Shape>(num_outputs, call.inputs[0]);
      };
}

OpDef& AddRoundingAttributes(OpDef& op) {
  return op.Attribute("stochastic", int64_t{0})
      .Attribute("seed", int64_t{0})
      .Attribute("stream", int64_t{0});
}

Result<void> CheckRounding(const Attributes& attributes, bool has_update) {
  if (RoundsAtRandom(attributes) && !has_update) {
    return BadInput("stochastic rounding needs the number of the update");
  }
  const int64_t stream = attributes.Int("stream");
  if (stream < 0 || stream > UINT32_MAX) {
    return BadInput(fmt::format("stream is {}, expected 0 to {}", stream, UINT32_MAX));
  }
  return {};
}

}  // namespace thimble
