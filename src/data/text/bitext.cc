#include "thimble/data/text/bitext.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/base/crc64.h"
#include "thimble/base/sealed_text.h"
#include "thimble/data/text/bitext_folder.h"
#include "thimble/data/text/text_file.h"
#include "thimble/data/text/word_reader.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

constexpr size_t kScanBufferBytes = size_t{64} << 10;  // of each file, while it is opened
constexpr size_t kLineBufferBytes = 4096;              // holds nearly every line
// So many lines of hostile files are no reason to reserve more than 1.2 GB of addresses.
constexpr int64_t kMaxTextLines = 100'000'000;

using LineBuffer = std::array<char, kLineBufferBytes>;

// Where the sentences of a pair begin, and how many tokens they have, </s> included.
struct PairPlace {
  uint32_t source_offset = 0;
  uint32_t target_offset = 0;
  uint16_t source_tokens = 0;
  uint16_t target_tokens = 0;
};
static_assert(sizeof(PairPlace) == 12);

// One side of a data set.
struct Side {
  TextFile file;
  std::shared_ptr<const Dictionary> dictionary;
};

// One line of a file that is read from its beginning.
struct ScannedLine {
  int64_t offset = 0;
  int64_t words = 0;
};

// Goes through the lines of a file.
class LineScan {
 public:
  explicit LineScan(const TextFile& file)
      : buffer_(kScanBufferBytes), words_(file.reader, 0, buffer_) {}

  Result<ScannedLine> Next() {
    ScannedLine line{words_.offset(), 0};
    while (true) {
      THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd next, words_.Next());
      if (next.kind != WordOrEnd::Kind::kWord) return line;
      ++line.words;
    }
  }

 private:
  std::vector<char> buffer_;
  WordReader words_;
};

Error LineHasChanged(const FileReader& file, int64_t offset) {
  return BadInput(
      fmt::format("{}: has changed since it was opened: the line at offset {} is another one",
                  file.path(), offset));
}

// A reader at the beginning of the line. The line feed before it must still be there.
Result<WordReader> ReaderOfLine(const FileReader& file, int64_t offset, LineBuffer& buffer) {
  THIMBLE_TRY(file.CheckUnchanged());
  WordReader words(file, std::max<int64_t>(offset - 1, 0), buffer);
  if (offset == 0) return words;
  THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd before, words.Next());
  if (before.kind != WordOrEnd::Kind::kLineEnd || words.offset() != offset) {
    return LineHasChanged(file, offset);
  }
  return words;
}

// Writes the indices of the line's words and </s>. A line that was cut has more words than ids.
Result<void> ReadLine(const Side& side, int64_t offset, bool may_be_cut, std::span<int32_t> ids) {
  LineBuffer buffer;
  THIMBLE_ASSIGN_OR_RETURN(WordReader words, ReaderOfLine(side.file.reader, offset, buffer));
  size_t count = 0;
  while (true) {
    THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd next, words.Next());
    if (next.kind != WordOrEnd::Kind::kWord) break;
    if (count + 1 == ids.size() && may_be_cut) break;
    if (count + 1 == ids.size()) return LineHasChanged(side.file.reader, offset);
    ids[count++] = side.dictionary->Find(next.word);
  }
  if (count + 1 != ids.size()) return LineHasChanged(side.file.reader, offset);
  ids[count] = Dictionary::kEnd;
  return {};
}

Result<std::string> LineOfText(const FileReader& file, int64_t offset) {
  LineBuffer buffer;
  THIMBLE_ASSIGN_OR_RETURN(WordReader words, ReaderOfLine(file, offset, buffer));
  std::string line;
  LineJoiner joiner(line);
  while (true) {
    THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd next, words.Next());
    if (next.kind != WordOrEnd::Kind::kWord) return line;
    joiner.Append(next.word);
  }
}

// What happens to pairs that are empty or too long.
enum class Rule : uint8_t { kLeaveOut, kCut };

class Bitext final : public TextDataset {
 public:
  static Result<std::unique_ptr<TextDataset>> Open(Side source, Side target, Rule rule,
                                                   int32_t max_tokens) {
    auto bitext = std::make_unique<Bitext>(std::move(source), std::move(target), rule, max_tokens);
    THIMBLE_TRY(bitext->FindPairs());
    return std::unique_ptr<TextDataset>(std::move(bitext));
  }

  Bitext(Side source, Side target, Rule rule, int32_t max_tokens)
      : source_(std::move(source)), target_(std::move(target)), rule_(rule), max_(max_tokens) {}

  const Dictionary& source_dictionary() const override { return *source_.dictionary; }
  const Dictionary& target_dictionary() const override { return *target_.dictionary; }
  int64_t size() const override { return std::ssize(pairs_); }
  PairLength LengthAt(int64_t index) const override {
    const PairPlace& pair = At(index);
    return {pair.source_tokens, pair.target_tokens};
  }
  TextOmissions omissions() const override { return omissions_; }

  Result<void> Read(int64_t index, std::span<int32_t> source,
                    std::span<int32_t> target) const override {
    const PairPlace& pair = At(index);
    THIMBLE_CHECK(source.size() == pair.source_tokens && target.size() == pair.target_tokens,
                  "space for {} and {} tokens, expected {} and {}", source.size(), target.size(),
                  pair.source_tokens, pair.target_tokens);
    THIMBLE_TRY(ReadLine(source_, pair.source_offset, MayBeCut(source), source));
    return ReadLine(target_, pair.target_offset, MayBeCut(target), target);
  }

  Result<std::string> SourceLine(int64_t index) const override {
    return LineOfText(source_.file.reader, At(index).source_offset);
  }
  Result<std::string> TargetLine(int64_t index) const override {
    return LineOfText(target_.file.reader, At(index).target_offset);
  }

 private:
  const PairPlace& At(int64_t index) const {
    THIMBLE_CHECK(index >= 0 && index < size(), "pair {} of {}", index, size());
    return pairs_[static_cast<size_t>(index)];
  }
  bool MayBeCut(std::span<const int32_t> ids) const {
    return rule_ == Rule::kCut && std::ssize(ids) == max_;
  }

  Result<void> CheckLineCounts() const;
  Result<void> FindPairs();
  void AddPair(const ScannedLine& source, const ScannedLine& target);
  // Tokens of a sentence, with </s>; cut if it is too long.
  uint16_t TokensOf(const ScannedLine& line);

  Side source_;
  Side target_;
  Rule rule_;
  int32_t max_;  // tokens of a sentence, with </s>
  std::vector<PairPlace> pairs_;
  TextOmissions omissions_;
};

Result<void> Bitext::CheckLineCounts() const {
  const TextFile& source = source_.file;
  THIMBLE_TRY(CheckSameLines(source, target_.file));
  if (source.lines <= kMaxTextLines) return {};
  return BadInput(fmt::format("{}: has {} lines, expected at most {}", source.reader.path(),
                              source.lines, kMaxTextLines));
}

Result<void> Bitext::FindPairs() {
  THIMBLE_TRY(CheckLineCounts());
  pairs_.reserve(static_cast<size_t>(source_.file.lines));
  LineScan source_lines(source_.file);
  LineScan target_lines(target_.file);
  for (int64_t line = 0; line < source_.file.lines; ++line) {
    THIMBLE_ASSIGN_OR_RETURN(const ScannedLine source, source_lines.Next());
    THIMBLE_ASSIGN_OR_RETURN(const ScannedLine target, target_lines.Next());
    AddPair(source, target);
  }
  THIMBLE_TRY(source_.file.reader.CheckUnchanged());
  THIMBLE_TRY(target_.file.reader.CheckUnchanged());
  if (!pairs_.empty()) return {};
  return BadInput(
      fmt::format("{}: no pair of sentences can be used: {} are empty, {} have more than {} tokens",
                  source_.file.reader.path(), omissions_.empty_pairs, omissions_.long_pairs, max_));
}

void Bitext::AddPair(const ScannedLine& source, const ScannedLine& target) {
  if (rule_ == Rule::kLeaveOut) {
    const bool empty = source.words == 0 || target.words == 0;
    const bool too_long = source.words >= max_ || target.words >= max_;
    omissions_.empty_pairs += empty ? 1 : 0;
    omissions_.long_pairs += too_long && !empty ? 1 : 0;
    if (empty || too_long) return;
  }
  pairs_.push_back({static_cast<uint32_t>(source.offset), static_cast<uint32_t>(target.offset),
                    TokensOf(source), TokensOf(target)});
}

uint16_t Bitext::TokensOf(const ScannedLine& line) {
  if (line.words >= max_) ++omissions_.cut_sentences;
  return static_cast<uint16_t>(std::min<int64_t>(line.words + 1, max_));
}

// The two files of one part, their lines counted.
struct TextPair {
  TextFile source;
  TextFile target;
};

Result<TextPair> OpenTextPair(const BitextFolder& folder, const std::string& part,
                              Crc64& checksum) {
  THIMBLE_ASSIGN_OR_RETURN(TextFile source, OpenTextFile(folder.SourcePath(part), checksum));
  THIMBLE_ASSIGN_OR_RETURN(TextFile target, OpenTextFile(folder.TargetPath(part), checksum));
  return TextPair{std::move(source), std::move(target)};
}

using SharedDictionary = std::shared_ptr<const Dictionary>;
using SharedMerges = std::shared_ptr<const MergeList>;

Result<SharedDictionary> MakeDictionary(const std::string& path, const TextFile& train,
                                        const DictionaryOptions& options) {
  if (!path.empty()) {
    THIMBLE_ASSIGN_OR_RETURN(Dictionary read, Dictionary::Read(path));
    return SharedDictionary(std::make_shared<Dictionary>(std::move(read)));
  }
  DictionaryBuilder builder;
  THIMBLE_TRY(builder.CountFile(train));
  return SharedDictionary(std::make_shared<Dictionary>(builder.Build(options)));
}

// What all data sets of a folder share.
class BitextOpener {
 public:
  BitextOpener(const BitextFolder& folder, const TextDataOptions& options)
      : folder_(folder), options_(options) {}

  Result<std::unique_ptr<TextDataset>> OpenTrain() {
    THIMBLE_ASSIGN_OR_RETURN(TextPair files, OpenTextPair(folder_, "train", checksum_));
    THIMBLE_ASSIGN_OR_RETURN(source_dictionary_, MakeDictionary(folder_.source_dictionary,
                                                                files.source, options_.dictionary));
    THIMBLE_ASSIGN_OR_RETURN(target_dictionary_, MakeDictionary(folder_.target_dictionary,
                                                                files.target, options_.dictionary));
    return Pair(std::move(files), Rule::kLeaveOut);
  }

  // After OpenTrain, which makes the dictionaries.
  Result<std::unique_ptr<TextDataset>> OpenOther(const std::string& part) {
    THIMBLE_ASSIGN_OR_RETURN(TextPair files, OpenTextPair(folder_, part, checksum_));
    return Pair(std::move(files), Rule::kCut);
  }

  Result<SharedMerges> OpenMerges() {
    if (folder_.merges.empty()) return SharedMerges();
    THIMBLE_ASSIGN_OR_RETURN(MergeList read, MergeList::Read(folder_.merges));
    merges_ = std::make_shared<MergeList>(std::move(read));
    return merges_;
  }

  // Of all files that were opened, the dictionaries and the merges.
  uint64_t Checksum() const {
    Crc64 all = checksum_;
    if (merges_ != nullptr) all.Append(merges_->ToText());
    for (const SharedDictionary& dictionary : {source_dictionary_, target_dictionary_}) {
      all.Append(dictionary->ToText());
    }
    return all.value();
  }

 private:
  Result<std::unique_ptr<TextDataset>> Pair(TextPair files, Rule rule) const {
    return Bitext::Open({std::move(files.source), source_dictionary_},
                        {std::move(files.target), target_dictionary_}, rule,
                        options_.max_sentence_tokens);
  }

  const BitextFolder& folder_;
  const TextDataOptions& options_;
  Crc64 checksum_;
  SharedDictionary source_dictionary_;
  SharedDictionary target_dictionary_;
  SharedMerges merges_;
};

}  // namespace

Result<TextData> OpenBitext(const std::string& folder, const std::string& languages,
                            const TextDataOptions& options) {
  THIMBLE_CHECK(options.max_sentence_tokens >= 2 && options.max_sentence_tokens <= UINT16_MAX,
                "sentences of at most {} tokens", options.max_sentence_tokens);
  THIMBLE_ASSIGN_OR_RETURN(const BitextFolder files, FindBitext(folder, languages));
  BitextOpener opener(files, options);
  TextData data;
  THIMBLE_ASSIGN_OR_RETURN(data.train, opener.OpenTrain());
  if (files.has_validation) {
    THIMBLE_ASSIGN_OR_RETURN(data.validation, opener.OpenOther("valid"));
  }
  THIMBLE_ASSIGN_OR_RETURN(data.test, opener.OpenOther("test"));
  THIMBLE_ASSIGN_OR_RETURN(data.merges, opener.OpenMerges());
  data.source_language = files.source_language;
  data.target_language = files.target_language;
  data.identity = FormatSeal(opener.Checksum());
  return data;
}

}  // namespace thimble
