#include "thimble/train/options/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace thimble {
namespace {

bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

OptionValue ValueOf(std::string_view text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](char c) { return IsCapital(c) || c == '['; });
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.begin()));
  return {.word = std::string(text.begin(), end),
          .whole = rest.empty() || rest.front() == '[',
          .is_file = rest.starts_with("FILE"),
          .is_folder = rest.starts_with("DIR")};
}

}  // namespace

std::vector<OptionValue> ValuesOf(std::string_view text) {
  std::vector<OptionValue> values;
  while (!text.empty()) {
    const size_t bar = std::min(text.find('|'), text.size());
    values.push_back(ValueOf(text.substr(0, bar)));
    text.remove_prefix(std::min(bar + 1, text.size()));
  }
  return values;
}

std::vector<std::string> OnlyValues(std::string_view text) {
  if (text.find('[') != std::string_view::npos ||
      std::any_of(text.begin(), text.end(), IsCapital)) {
    return {};
  }
  std::vector<std::string> words;
  for (const OptionValue& value : ValuesOf(text)) words.push_back(value.word);
  return words;
}

std::string AnyOf(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  if (words.size() == 1) return words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace thimble
