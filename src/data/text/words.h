// The words of a line of text: what is between whitespace, as Python's str.split() finds it, so
// that dictionaries agree with fairseq's and scores with sacreBLEU's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thimble {

// No character of whitespace has more bytes in UTF-8.
inline constexpr size_t kMaxSpaceBytes = 3;
// More bytes than any word of a natural language has. A longer one is read as several words.
inline constexpr size_t kMaxWordBytes = 1000;
// At the end of a subword that is not the last of its word (the mark of subword-nmt).
inline constexpr std::string_view kSubwordMark = "@@";

// Bytes of the whitespace character, Unicode's included, that the text begins with; 0 if it begins
// with none.
size_t SpaceBytes(std::string_view text);

// Bytes before the first whitespace: those of a word, if the text begins with one.
size_t WordBytes(std::string_view text);

// Removes the first word and the whitespace before it from `rest` and returns the word; empty if
// there is none.
std::string_view TakeWord(std::string_view& rest);

// Bytes of the word that the text begins with; if that is longer than kMaxWordBytes, the bytes of
// those of its characters that end before that. 0 if the text begins with whitespace.
size_t ShortWordBytes(std::string_view text);
// As TakeWord, but takes only ShortWordBytes of a word; the rest follows as words of its own.
std::string_view TakeShortWord(std::string_view& rest);

// Bytes of the character that the text begins with: a byte and those that continue a character.
// Requires text. Any bytes will do.
size_t FirstCharacterBytes(std::string_view text);

// Appends a word to a line: after a space, unless the line is empty or ends within a word. A word
// that ends in "@@" is the beginning of one that the next word continues; the marks are not part of
// the line.
class LineJoiner {
 public:
  // `line` must outlive this.
  explicit LineJoiner(std::string& line) : line_(line) {}
  void Append(std::string_view word);

 private:
  std::string& line_;
  bool joined_ = true;  // the next word continues the last one, or is the first
};

}  // namespace thimble
