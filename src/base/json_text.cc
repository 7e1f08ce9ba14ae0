#include "thimble/base/json_text.h"

#include <fmt/format.h>

namespace thimble {
namespace {

using Json = nlohmann::ordered_json;

// Our files are flat.
Result<void> CheckNesting(std::string_view text) {
  constexpr int kMostNested = 16;
  int depth = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;  // whatever is escaped, a quote too
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMostNested) {
        return BadInput(
            fmt::format("byte {}: expected at most {} nested brackets", at, kMostNested));
      }
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return {};
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  THIMBLE_TRY(CheckNesting(text));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {  // the one way to learn where
    return BadInput(fmt::format("is torn or no JSON: byte {} is unexpected", error.byte));
  } catch (const Json::exception&) {
    return BadInput("has a number that is too large");
  }
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace thimble
