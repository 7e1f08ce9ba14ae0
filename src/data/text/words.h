// The words of a line of text: what is between whitespace, as Python's str.split() finds it, so
// that dictionaries agree with fairseq's and scores with sacreBLEU's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thimble {

// No character of whitespace has more bytes in UTF-8.
inline constexpr size_t kMaxSpaceBytes = 3;

// Bytes of the whitespace character, Unicode's included, that the text begins with; 0 if it begins
// with none.
size_t SpaceBytes(std::string_view text);

// Bytes before the first whitespace: those of a word, if the text begins with one.
size_t WordBytes(std::string_view text);

// Removes the first word and the whitespace before it from `rest` and returns the word; empty if
// there is none.
std::string_view TakeWord(std::string_view& rest);

// Appends a word to a line: after a space, unless the line is empty or ends within a word. A word
// that ends in "@@" is the beginning of one that the next word continues (the marks of
// subword-nmt); the marks are not part of the line.
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
