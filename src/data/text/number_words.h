// Numbers in German and English words, as lists of tokens. German words are split into parts with
// the marks of subword-nmt: 24 is "vier@@ und@@ zwanzig" and "twenty four".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace thimble {

// The tokens of one phrase. All are literals, so nothing is allocated.
class TokenList {
 public:
  static constexpr size_t kMaxTokens = 48;  // the longest phrase of the task has fewer

  void Add(std::string_view token);
  size_t size() const { return size_; }
  std::span<const std::string_view> tokens() const { return std::span(tokens_).first(size_); }

 private:
  std::array<std::string_view, kMaxTokens> tokens_;
  size_t size_ = 0;
};

// How a German number goes on: "eins", but "ein Euro" and "eintausend".
enum class GermanEnd : uint8_t { kAlone, kBeforeNoun, kGlued };

// A cardinal number. Requires 0 <= n < 1,000,000; with kGlued n > 0, with kBeforeNoun n % 100 != 1
// unless n is 1 (there are two ways to say 101 things).
void AddGermanNumber(int32_t n, GermanEnd end, TokenList& tokens);
void AddEnglishNumber(int32_t n, TokenList& tokens);

// An ordinal number: "dritte", or "dritten" as after "am"; "third". Requires 1 <= n < 1,000.
enum class GermanCase : uint8_t { kPlain, kWithN };
void AddGermanOrdinal(int32_t n, GermanCase ending, TokenList& tokens);
void AddEnglishOrdinal(int32_t n, TokenList& tokens);

// A year: "neunzehnhundertvierundachtzig", "nineteen eighty four". Requires 1100 <= year < 10,000.
void AddGermanYear(int32_t year, TokenList& tokens);
void AddEnglishYear(int32_t year, TokenList& tokens);

// All tokens that these functions add.
std::span<const std::string_view> GermanNumberTokens();
std::span<const std::string_view> EnglishNumberTokens();

}  // namespace thimble
