#include "thimble/plan/recompute/recompute_spec.h"

#include <fmt/format.h>

#include <charconv>

#include "thimble/base/byte_size.h"

namespace thimble {
namespace {

Error Wrong(std::string_view text, std::string_view expected) {
  return BadInput(fmt::format("--recompute {}: expected {}", text, expected));
}

Result<size_t> ParseStride(std::string_view text, std::string_view number) {
  size_t stride = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), stride);
  if (code != std::errc() || end != number.data() + number.size() || stride == 0) {
    return Wrong(text, "a number of blocks, at least 1, after the colon");
  }
  return stride;
}

Result<size_t> ParseLimit(std::string_view text, std::string_view size) {
  auto bytes = ParseByteSize(size);
  if (!bytes.ok()) return WithContext(fmt::format("--recompute {}", text), bytes.error());
  if (*bytes <= 0) return Wrong(text, "a size above 0 after the colon");
  return static_cast<size_t>(*bytes);
}

}  // namespace

Result<RecomputeSpec> ParseRecompute(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? text.substr(colon + 1) : std::string_view();
  RecomputeSpec spec;
  if (name == "blocks") {
    spec.kind = RecomputeKind::kBlocks;
    if (has_argument) {
      THIMBLE_ASSIGN_OR_RETURN(spec.stride, ParseStride(text, argument));
    }
    return spec;
  }
  if (name == "optimal") {
    spec.kind = RecomputeKind::kOptimal;
    if (has_argument) {
      THIMBLE_ASSIGN_OR_RETURN(spec.limit_bytes, ParseLimit(text, argument));
    }
    return spec;
  }
  if (text == "none") return spec;
  if (text == "cheap") return RecomputeSpec{.kind = RecomputeKind::kCheap};
  if (text == "sqrt") return RecomputeSpec{.kind = RecomputeKind::kSqrt};
  return Wrong(text, "none, cheap, blocks, blocks:N, sqrt, optimal or optimal:LIMIT");
}

std::string ToString(const RecomputeSpec& spec) {
  switch (spec.kind) {
    case RecomputeKind::kNone:
      return "none";
    case RecomputeKind::kCheap:
      return "cheap";
    case RecomputeKind::kBlocks:
      return spec.stride == 1 ? "blocks" : fmt::format("blocks:{}", spec.stride);
    case RecomputeKind::kSqrt:
      return "sqrt";
    case RecomputeKind::kOptimal:
      return spec.limit_bytes == 0 ? "optimal" : fmt::format("optimal:{}", spec.limit_bytes);
  }
  return "?";
}

}  // namespace thimble
