#include "thimble/data/text/subwords/split_into_entries.h"

#include <climits>
#include <string>

namespace thimble {
namespace {

// The best split of a word from one of its bytes on.
struct BestSplit {
  int entries = INT_MAX;  // none
  int32_t entry = 0;      // the first one
  size_t end = 0;         // where it ends
};

}  // namespace

std::vector<int32_t> SplitIntoEntries(const Dictionary& dictionary, std::string_view word) {
  if (word.size() > kMostBytesToSplit) return {};
  std::vector<BestSplit> from(word.size() + 1);
  from[word.size()].entries = 0;
  std::string token;
  for (size_t begin = word.size(); begin-- > 0;) {
    for (size_t end = begin + 1; end <= word.size(); ++end) {
      if (from[end].entries == INT_MAX || from[end].entries + 1 > from[begin].entries) continue;
      token = word.substr(begin, end - begin);
      if (end < word.size()) token += "@@";
      const int32_t entry = dictionary.Find(token);
      if (entry == Dictionary::kUnknown) continue;
      from[begin] = {from[end].entries + 1, entry, end};
    }
  }
  std::vector<int32_t> entries;
  if (from[0].entries == INT_MAX) return entries;
  for (size_t begin = 0; begin < word.size(); begin = from[begin].end) {
    entries.push_back(from[begin].entry);
  }
  return entries;
}

}  // namespace thimble
