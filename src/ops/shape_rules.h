// Checks shared by the shape rules of several ops; the error names the wrong input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Fails with "'gamma' has shape (3), expected (16)".
Result<void> RequireShape(std::string_view port, const Shape& actual, const Shape& expected);
// Fails with "'x' has shape (3), expected 4 dimensions (B, H, W, C)".
Result<void> RequireRank(std::string_view port, const Shape& actual, size_t rank,
                         std::string_view letters);
// Fails with "kernel is 0, expected at least 1".
Result<void> RequireAtLeast(std::string_view attribute, int64_t actual, int64_t least);

// The factors of the logits of words: x (B, T, C), which has three dimensions, and w (V, C).
Result<void> RequireProjection(const Shape& x, const Shape& w);
// The logits of a dynamic convolution's taps, (B, T, heads * K), that belong to x (B, T, C), whose
// channels the heads share equally. Requires that both have three dimensions.
Result<void> RequireTapLogits(const Shape& x, const Shape& logits, int64_t heads);

// Shape rule: all inputs, named in order, and all outputs have the same shape.
ShapeFunction AllSameShape(std::vector<std::string> inputs, size_t num_outputs = 1);

// The attributes of stochastic rounding (update_rounding.h), with which nothing is rounded at
// random, and their check. `has_update`: the node has the number of the update.
OpDef& AddRoundingAttributes(OpDef& op);
Result<void> CheckRounding(const Attributes& attributes, bool has_update);

}  // namespace thimble
