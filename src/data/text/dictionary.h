// Dictionary: the words that a model knows, numbered as fairseq numbers them: four special entries,
// then words by falling frequency.
//
//   DictionaryBuilder builder;
//   for (word of the training text) THIMBLE_TRY(builder.Count(word));
//   const Dictionary dictionary = builder.Build({.multiple_of = 8});
//   dictionary.Find("haus");  // its index, or kUnknown
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/text/text_file.h"
#include "thimble/data/text/word_table.h"

namespace thimble {

// Larger than the dictionaries of multilingual models. Subwords need some thousand entries.
inline constexpr int32_t kMaxDictionaryEntries = 1 << 18;
// Of all words together, and of a file.
inline constexpr int64_t kMaxDictionaryBytes = int64_t{16} << 20;

class Dictionary {
 public:
  // The special entries. A word of the text that is written like one of them is unknown.
  static constexpr int32_t kBegin = 0;    // <s>; not used in sentences
  static constexpr int32_t kPad = 1;      // <pad>
  static constexpr int32_t kEnd = 2;      // </s>
  static constexpr int32_t kUnknown = 3;  // <unk>
  static constexpr int32_t kNumSpecial = 4;

  // Reads a file with "WORD COUNT" in each line, as fairseq writes dict.de.txt: the words after the
  // special entries, in their order. BadInput, with file and line, for anything else, for a word
  // that occurs twice or is special, and beyond the limits above.
  static Result<Dictionary> Read(const std::string& path);
  // These words, in their order. Requires distinct words, none special or empty.
  explicit Dictionary(std::span<const std::string_view> words);

  // The content of such a file.
  std::string ToText() const;

  // Number of entries, special ones included.
  int32_t size() const { return words_.size(); }
  // The index of the word, or kUnknown. Allocates nothing.
  int32_t Find(std::string_view word) const;
  // Requires 0 <= index < size().
  std::string_view word(int32_t index) const { return words_.word(index); }
  // How often the word occurred in the training text; 0 for special entries.
  int64_t count(int32_t index) const { return counts_[static_cast<size_t>(index)]; }

  // The text of a sentence up to its end: words separated by spaces, subwords joined. <pad> and <s>
  // are skipped. An index that is no entry becomes <unk>.
  std::string Line(std::span<const int32_t> ids) const;

 private:
  friend class DictionaryBuilder;
  Dictionary();
  void Add(std::string_view word, int64_t count);
  // Reads one line of a file and adds its word. The error has no place yet.
  Result<void> AddLine(std::string_view line);

  WordTable words_;
  std::vector<int64_t> counts_;
};

struct DictionaryOptions {
  // Rarer words are left out; so are the rarest beyond max_entries.
  int64_t min_count = 0;
  int32_t max_entries = kMaxDictionaryEntries;  // special ones included
  // Entries "madeupword0000", … are added until the size is a multiple of this, as fairseq's
  // preparation does with 8.
  int32_t multiple_of = 1;
};

class DictionaryBuilder {
 public:
  // BadInput if there are more distinct words than a dictionary may have.
  Result<void> Count(std::string_view word);
  // Counts all words of a file.
  Result<void> CountFile(const TextFile& file);

  // Words of equal frequency are in the order of their bytes, as fairseq has them. Requires
  // multiple_of >= 1 and max_entries > kNumSpecial.
  Dictionary Build(const DictionaryOptions& options) const;

 private:
  WordTable words_;
  std::vector<int64_t> counts_;
};

}  // namespace thimble
