#include "thimble/model/file/toml_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/quote_name.h"
#include "thimble/base/toml_depth.h"

namespace thimble {

SourcePlace PlaceOf(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

std::vector<Entry> InOrder(const toml::table& table) {
  std::vector<Entry> entries;
  for (const auto& [key, node] : table) {
    entries.push_back({std::string(key.str()), PlaceOf(key.source()), &node});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return entries;
}

Result<toml::table> ParseToml(const std::string& text, const std::string& path) {
  if (const int64_t line = LineOfDeepKey(text); line > 0) {
    return BadInput(fmt::format("{}:{}: a key has more than {} parts", path, line, kMaxKeyParts));
  }
  toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return ErrorAt(path, PlaceOf(parsed.error().source()),
                   OneLine(parsed.error().description()));  // which may quote the file
  }
  return std::move(parsed).table();
}

}  // namespace thimble
