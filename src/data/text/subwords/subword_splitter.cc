#include "thimble/data/text/subwords/subword_splitter.h"

#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/data/text/words.h"

namespace thimble {

int32_t SubwordSplitter::MergeOf(const Part& first, const Part& second) const {
  if (first.symbol < 0 || second.symbol < 0) return kNoMerge;
  const int32_t merge = merges_.FindMerge(first.symbol, second.symbol);
  return merge < 0 ? kNoMerge : merge;
}

void SubwordSplitter::BeginWithCharacters(std::string_view word) {
  parts_.clear();
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = begin + FirstCharacterBytes(word.substr(begin));
    token_ = word.substr(begin, end - begin);
    if (end == word.size()) token_ += kWordEndMark;
    parts_.push_back({merges_.FindSymbol(token_), kNoMerge, static_cast<uint32_t>(end)});
    begin = end;
  }
  for (size_t i = 0; i + 1 < parts_.size(); ++i) {
    parts_[i].merge = MergeOf(parts_[i], parts_[i + 1]);
  }
}

void SubwordSplitter::MergeEverywhere(int32_t merge) {
  size_t kept = 0;
  bool last_is_new = false;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part part = parts_[i];
    const bool is_new = part.merge == merge;
    if (is_new) part = {merges_.result(merge), kNoMerge, parts_[++i].end};
    if (kept > 0 && (is_new || last_is_new)) {
      parts_[kept - 1].merge = MergeOf(parts_[kept - 1], part);
    }
    parts_[kept++] = part;
    last_is_new = is_new;
  }
  parts_.resize(kept);
}

void SubwordSplitter::Split(std::string_view word, FunctionRef<void(std::string_view)> take) {
  THIMBLE_CHECK(word.size() <= kMaxWordBytes, "a word of {} bytes", word.size());
  BeginWithCharacters(word);
  const auto first_merge = [&] {
    return std::min_element(parts_.begin(), parts_.end(),
                            [](const Part& a, const Part& b) { return a.merge < b.merge; });
  };
  for (auto part = first_merge(); part != parts_.end() && part->merge != kNoMerge;
       part = first_merge()) {
    MergeEverywhere(part->merge);
  }
  size_t begin = 0;
  for (const Part& part : parts_) {
    token_ = word.substr(begin, part.end - begin);
    if (part.end != word.size()) token_ += kSubwordMark;
    take(token_);
    begin = part.end;
  }
}

std::string SubwordSplitter::SplitLine(std::string_view line) {
  std::string split;
  const auto append = [&](std::string_view token) {
    if (!split.empty()) split += ' ';
    split += token;
  };
  for (std::string_view word = TakeShortWord(line); !word.empty(); word = TakeShortWord(line)) {
    if (word.ends_with(kSubwordMark)) {
      append(word);
    } else {
      Split(word, append);
    }
  }
  return split;
}

}  // namespace thimble
