// MergeList: the merges of byte-pair encoding (Sennrich et al., 2016), in the order in which they
// were learned. A word is first a row of symbols, one for each character, the last one with the
// mark "</w>"; each merge then joins two neighbouring symbols into one, wherever they occur.
//
//   #version: 0.2
//   e n</w>
//   s c
//   sc h
//
// That is the format of subword-nmt's files, from version 0.2 on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/data/text/subwords/pair_table.h"
#include "thimble/data/text/word_table.h"

namespace thimble {

// The name of such a file in a folder of text, and in a run folder.
inline constexpr const char* kMergesFile = "bpe.codes";
// At the end of a word's last symbol.
inline constexpr std::string_view kWordEndMark = "</w>";
// Each merge makes at most one more word of the dictionary.
inline constexpr int32_t kMaxMerges = kMaxDictionaryEntries;

class MergeList {
 public:
  // BadInput, with file and line, for anything but the format above: another version, a line that
  // is not two symbols, not UTF-8, a merge that occurs twice, too many merges, none at all; and for
  // merges whose results could not be read back from text: "</w>" within a word, "@@" at its end.
  static Result<MergeList> Read(const std::string& path);
  // The same for a text; errors name the line.
  static Result<MergeList> Parse(std::string_view text);

  // The content of such a file.
  std::string ToText() const;

  // Number of merges.
  int32_t size() const { return pairs_.size(); }
  // The symbol's number, or -1 if no merge uses or makes it. Allocates nothing.
  int32_t FindSymbol(std::string_view text) const { return symbols_.Find(text); }
  // The merge of these two symbols, or -1. Allocates nothing.
  int32_t FindMerge(int32_t first, int32_t second) const { return pairs_.Find({first, second}); }
  // The symbol that the merge makes. Requires 0 <= merge < size().
  int32_t result(int32_t merge) const { return results_[static_cast<size_t>(merge)]; }

  // Appends a merge of two symbols. BadInput, without a place, as for Read.
  Result<void> Add(std::string_view first, std::string_view second);

 private:
  Result<void> AddLine(std::string_view line);

  WordTable symbols_;
  PairTable pairs_;               // by merge
  std::vector<int32_t> results_;  // by merge
};

// Whether merges may be learned from the word. Not from those that cannot be told from marks:
// with "</w>", or with "@@" at the end. They are split like all others, with merges of other words.
bool CanLearnFrom(std::string_view word);

}  // namespace thimble
