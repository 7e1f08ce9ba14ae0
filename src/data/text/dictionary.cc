#include "thimble/data/text/dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "thimble/base/check.h"
#include "thimble/base/quote_name.h"
#include "thimble/base/utf8.h"
#include "thimble/data/text/word_reader.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, Dictionary::kNumSpecial> kSpecialWords = {"<s>", "<pad>",
                                                                                 "</s>", "<unk>"};
constexpr size_t kCountBufferBytes = size_t{64} << 10;  // few reads, little memory

bool IsSpecial(std::string_view word) {
  return std::find(kSpecialWords.begin(), kSpecialWords.end(), word) != kSpecialWords.end();
}

// What is wrong with a word of a dictionary file; empty if nothing is.
std::string FaultOfWord(std::string_view word) {
  if (word.size() > kMaxWordBytes) {
    return fmt::format("has {} bytes, expected at most {}", word.size(), kMaxWordBytes);
  }
  if (!IsUtf8(word)) return "is not UTF-8";
  std::string_view rest = word;
  if (TakeWord(rest) != word || word.empty()) return "is not one word";
  if (IsSpecial(word)) return "is a special entry, which every dictionary has anyway";
  return {};
}

}  // namespace

Dictionary::Dictionary() {
  for (const std::string_view word : kSpecialWords) Add(word, 0);
}

Dictionary::Dictionary(std::span<const std::string_view> words) : Dictionary() {
  for (const std::string_view word : words) {
    THIMBLE_CHECK(FaultOfWord(word).empty() && words_.Find(word) < 0, "word '{}'", word);
    Add(word, 1);
  }
}

void Dictionary::Add(std::string_view word, int64_t count) {
  words_.FindOrAdd(word);
  counts_.push_back(count);
}

Result<void> Dictionary::AddLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos) {
    return BadInput(fmt::format("expected a word, a space and a count, got {}", QuoteName(line)));
  }
  const std::string_view word = line.substr(0, space);
  const std::string_view digits = line.substr(space + 1);
  const std::string fault = FaultOfWord(word);
  if (!fault.empty()) return BadInput(fmt::format("{} {}", QuoteName(word), fault));
  int64_t count = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 0) {
    return BadInput(fmt::format("the count of {} is {}, expected a number from 0 to {}",
                                QuoteName(word), QuoteName(digits), INT64_MAX));
  }
  if (size() == kMaxDictionaryEntries) {
    return BadInput(
        fmt::format("too many words, expected at most {}", kMaxDictionaryEntries - kNumSpecial));
  }
  const int32_t before = words_.Find(word);
  if (before >= 0) {
    return BadInput(fmt::format("{} occurs a second time, first in line {}", QuoteName(word),
                                before - kNumSpecial + 1));
  }
  Add(word, count);
  return {};
}

Result<Dictionary> Dictionary::Read(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxDictionaryBytes));
  Dictionary dictionary;
  std::string_view rest = text;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto added = dictionary.AddLine(rest.substr(0, end));
    if (!added.ok()) return WithContext(fmt::format("{}: line {}", path, line), added.error());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (dictionary.size() == kNumSpecial) {
    return BadInput(
        fmt::format("{}: file is empty, expected a word and its count in each line", path));
  }
  return dictionary;
}

std::string Dictionary::ToText() const {
  std::string text;
  for (int32_t i = kNumSpecial; i < size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{} {}\n", word(i), count(i));
  }
  return text;
}

int32_t Dictionary::Find(std::string_view word) const {
  const int32_t index = words_.Find(word);
  return index < kNumSpecial ? kUnknown : index;
}

std::string Dictionary::Line(std::span<const int32_t> ids) const {
  std::string line;
  LineJoiner joiner(line);
  for (const int32_t id : ids) {
    if (id == kEnd) break;
    if (id == kPad || id == kBegin) continue;
    joiner.Append(word(id >= 0 && id < size() ? id : kUnknown));
  }
  return line;
}

Result<void> DictionaryBuilder::Count(std::string_view word) {
  if (IsSpecial(word)) return {};
  const auto index = static_cast<size_t>(words_.FindOrAdd(word));
  if (index == counts_.size()) counts_.push_back(0);
  ++counts_[index];
  if (words_.size() > kMaxDictionaryEntries - Dictionary::kNumSpecial ||
      words_.bytes() > kMaxDictionaryBytes) {
    return BadInput(
        fmt::format("the text has more than {} different words of {} bytes, too many for a "
                    "dictionary; split it into subwords",
                    words_.size() - 1, words_.bytes()));
  }
  return {};
}

Result<void> DictionaryBuilder::CountFile(const TextFile& file) {
  std::vector<char> buffer(kCountBufferBytes);
  WordReader words(file.reader, 0, buffer);
  while (true) {
    THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd next, words.Next());
    if (next.kind == WordOrEnd::Kind::kFileEnd) return {};
    if (next.kind == WordOrEnd::Kind::kLineEnd) continue;
    const auto counted = Count(next.word);
    if (!counted.ok()) return WithContext(file.reader.path(), counted.error());
  }
}

Dictionary DictionaryBuilder::Build(const DictionaryOptions& options) const {
  THIMBLE_CHECK(options.multiple_of >= 1 && options.max_entries > Dictionary::kNumSpecial,
                "a dictionary of at most {} entries, a multiple of {}", options.max_entries,
                options.multiple_of);
  std::vector<int32_t> order(counts_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count_of = [&](int32_t i) { return counts_[static_cast<size_t>(i)]; };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (count_of(a) != count_of(b)) return count_of(a) > count_of(b);
    return words_.word(a) < words_.word(b);
  });
  Dictionary dictionary;
  for (const int32_t i : order) {
    if (count_of(i) < options.min_count || dictionary.size() == options.max_entries) break;
    dictionary.Add(words_.word(i), count_of(i));
  }
  for (int i = 0; dictionary.size() % options.multiple_of != 0; ++i) {
    const std::string word = fmt::format("madeupword{:04}", i);
    if (dictionary.words_.Find(word) < 0) dictionary.Add(word, 0);
  }
  return dictionary;
}

}  // namespace thimble
