// SubwordSplitter: splits words into subwords with learned merges, as subword-nmt's apply_bpe does:
// "häuser" is "häu@@ ser".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/data/text/subwords/merge_list.h"

namespace thimble {

// Not thread-safe.
class SubwordSplitter {
 public:
  // `merges` must outlive this.
  explicit SubwordSplitter(const MergeList& merges) : merges_(merges) {}

  // Calls `take` for each subword, from left to right; all but the last end in "@@". Together,
  // without these marks, they are the word, and the last one does not end in "@@" even if the word
  // does. Any bytes are a word, but at most kMaxWordBytes of them.
  void Split(std::string_view word, FunctionRef<void(std::string_view)> take);

  // The words of a line, split; between single spaces. Words that end in "@@" are subwords already
  // and stay as they are, so that a line that is split already does not change. A word that is too
  // long is split as the words that WordReader makes of it.
  std::string SplitLine(std::string_view line);

 private:
  // A part of the word that is a symbol now.
  struct Part {
    int32_t symbol = -1;  // or -1: a character that no merge uses
    int32_t merge = 0;    // of this and the next part, or kNoMerge
    uint32_t end = 0;     // in the word
  };
  static constexpr int32_t kNoMerge = INT32_MAX;

  void BeginWithCharacters(std::string_view word);
  int32_t MergeOf(const Part& first, const Part& second) const;
  // Joins all neighbours that have this merge, from left to right.
  void MergeEverywhere(int32_t merge);

  const MergeList& merges_;
  std::vector<Part> parts_;  // of the word that is being split
  std::string token_;
};

}  // namespace thimble
