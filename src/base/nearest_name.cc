#include "thimble/base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace thimble {
namespace {

// Longer words are not typing errors; the limit also bounds the work on hostile input.
constexpr size_t kLongestWord = 64;

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Distances between prefixes of both words; only the last three rows are kept.
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string NearestName(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string lower = LowerCase(word);
  size_t nearest = std::max<size_t>(1, word.size() / 3) + 1;
  std::string found;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(lower, LowerCase(name));
    // A name that differs in every letter is not similar.
    if (distance >= nearest || distance >= name.size()) continue;
    nearest = distance;
    found = name;
  }
  return found;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names,
                       std::string_view prefix) {
  const std::string name = NearestName(word, names);
  return name.empty() ? std::string() : fmt::format("; did you mean {}{}?", prefix, name);
}

}  // namespace thimble
