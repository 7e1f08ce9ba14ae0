#include "thimble/base/quote_name.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace thimble {
namespace {

// Longer names are cut in messages.
constexpr size_t kQuotedBytes = 80;

}  // namespace

std::string QuoteName(std::string_view name) {
  const std::string text = nlohmann::json(name.substr(0, kQuotedBytes))
                               .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return name.size() > kQuotedBytes ? text + "..." : text;
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += control ? fmt::format("\\x{:02x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return line;
}

}  // namespace thimble
