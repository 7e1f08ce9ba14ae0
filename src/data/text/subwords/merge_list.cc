#include "thimble/data/text/subwords/merge_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/file_reader.h"
#include "thimble/base/quote_name.h"
#include "thimble/base/utf8.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

constexpr std::string_view kMergesVersion = "#version: 0.2";
constexpr int64_t kMaxMergesBytes = int64_t{16} << 20;  // as of dictionaries
// A merge makes a part of a word, which has at most so many bytes.
constexpr size_t kMaxMergeLineBytes = kMaxWordBytes + kWordEndMark.size() + 1;

// Removes the first line, which is returned without its end, from `rest`.
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// What is wrong with a merge; empty if nothing is.
std::string_view FaultOfMerge(std::string_view first, std::string_view second) {
  if (first.ends_with(kWordEndMark)) return "the first symbol has the mark </w> of a word's end";
  if (second == kWordEndMark) {
    return "the mark </w> stands alone, as before version 0.2 of the format";
  }
  const std::string result = fmt::format("{}{}", first, second);
  const std::string_view text = result;
  if (!second.ends_with(kWordEndMark)) {
    return text.ends_with(kWordEndMark) ? "the result looks like the end of a word" : "";
  }
  if (CanLearnFrom(text.substr(0, text.size() - kWordEndMark.size()))) return {};
  return "the result is a word with a mark, </w> or @@";
}

}  // namespace

bool CanLearnFrom(std::string_view word) {
  return word.find(kWordEndMark) == std::string_view::npos && !word.ends_with(kSubwordMark);
}

Result<void> MergeList::Add(std::string_view first, std::string_view second) {
  if (const std::string_view fault = FaultOfMerge(first, second); !fault.empty()) {
    return BadInput(fmt::format("{} {}: {}", QuoteName(first), QuoteName(second), fault));
  }
  if (size() == kMaxMerges) {
    return BadInput(fmt::format("too many merges, expected at most {}", kMaxMerges));
  }
  const int32_t before = size();
  const int32_t merge = pairs_.FindOrAdd({symbols_.FindOrAdd(first), symbols_.FindOrAdd(second)});
  if (merge != before) {
    return BadInput(fmt::format("{} {}: occurs a second time, first in line {}", QuoteName(first),
                                QuoteName(second), merge + 2));
  }
  results_.push_back(symbols_.FindOrAdd(fmt::format("{}{}", first, second)));
  return {};
}

Result<void> MergeList::AddLine(std::string_view line) {
  if (line.size() > kMaxMergeLineBytes) {
    return BadInput(
        fmt::format("has {} bytes, expected at most {}", line.size(), kMaxMergeLineBytes));
  }
  if (!IsUtf8(line)) return BadInput(fmt::format("{} is not UTF-8", QuoteName(line)));
  const size_t space = line.find(' ');
  const bool is_pair = space != line.npos && space > 0 && space + 1 < line.size();
  if (!is_pair || line.find(' ', space + 1) != line.npos) {
    return BadInput(
        fmt::format("expected two symbols with a space between them, got {}", QuoteName(line)));
  }
  return Add(line.substr(0, space), line.substr(space + 1));
}

Result<MergeList> MergeList::Parse(std::string_view text) {
  if (const std::string_view version = TakeLine(text); version != kMergesVersion) {
    return BadInput(
        fmt::format("line 1: expected \"{}\", got {}", kMergesVersion, QuoteName(version)));
  }
  MergeList list;
  for (int64_t line = 2; !text.empty(); ++line) {
    const auto added = list.AddLine(TakeLine(text));
    if (!added.ok()) return WithContext(fmt::format("line {}", line), added.error());
  }
  if (list.size() == 0) return BadInput("line 2: expected a merge, got the end of the file");
  return list;
}

Result<MergeList> MergeList::Read(const std::string& path) {
  THIMBLE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxMergesBytes));
  auto list = Parse(text);
  if (!list.ok()) return WithContext(path, list.error());
  return list;
}

std::string MergeList::ToText() const {
  std::string text = fmt::format("{}\n", kMergesVersion);
  for (int32_t merge = 0; merge < size(); ++merge) {
    const NumberPair& pair = pairs_.pair(merge);
    fmt::format_to(std::back_inserter(text), "{} {}\n", symbols_.word(pair.first),
                   symbols_.word(pair.second));
  }
  return text;
}

}  // namespace thimble
