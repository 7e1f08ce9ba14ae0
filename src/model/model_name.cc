#include "thimble/model/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace thimble {

Result<NameParts> ParseModelName(std::string_view name, const std::vector<std::string_view>& known,
                                 std::string_view expected) {
  const size_t colon = name.find(':');
  NameParts parsed{name.substr(0, colon), {}};
  std::set<std::string_view> seen;
  for (size_t end = colon; end != std::string_view::npos;) {
    const size_t begin = end + 1;
    end = name.find(',', begin);
    const std::string_view option = name.substr(begin, end - begin);
    const std::string_view key = option.substr(0, option.find('='));
    const std::string_view value =
        key.size() == option.size() ? std::string_view() : option.substr(key.size() + 1);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return BadInput(
          fmt::format("--model {}: unknown option '{}'; expected {}", name, key, expected));
    }
    if (!seen.insert(key).second) {
      return BadInput(fmt::format("--model {}: option '{}' is given twice", name, key));
    }
    parsed.options.emplace_back(key, value);
  }
  return parsed;
}

Result<double> ParseDropoutRate(std::string_view name, std::string_view key,
                                std::string_view value) {
  double rate = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), rate);
  const bool parsed = code == std::errc() && end == value.data() + value.size();
  if (parsed && rate >= 0 && rate < 1) return rate;
  return BadInput(fmt::format("--model {}: {}={}: expected a rate of at least 0 and below 1", name,
                              key, value));
}

}  // namespace thimble
