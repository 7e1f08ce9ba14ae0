#include "thimble/data/text/subwords/prepare_bitext.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "thimble/base/crc64.h"
#include "thimble/base/quote_name.h"
#include "thimble/data/text/bitext_folder.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/data/text/subwords/merge_learner.h"
#include "thimble/data/text/subwords/prepared_folder.h"
#include "thimble/data/text/subwords/subword_splitter.h"
#include "thimble/data/text/subwords/word_counts.h"
#include "thimble/data/text/text_file.h"
#include "thimble/data/text/word_reader.h"

namespace thimble {
namespace {

constexpr size_t kPrepareBufferBytes = size_t{64} << 10;  // few reads, little memory
// Raw text has hardly a word that ends in "@@"; of the tokens of text split with 10,000 merges more
// than one in 20 does, with 100,000 still more than one in 200.
constexpr int64_t kMostMarkedOf = 1000;
// As fairseq's preparation pads dictionaries.
constexpr DictionaryOptions kDictionaryOptions = {.multiple_of = 8};

constexpr const char* kTrainPart = "train";

// One file of the text.
struct RawFile {
  std::string part;
  std::string language;
  TextFile text;
};

// Calls `take` with each WordOrEnd but the end of the file.
template <class Take>
Result<void> ForEachWord(const TextFile& file, Take take) {
  std::vector<char> buffer(kPrepareBufferBytes);
  WordReader words(file.reader, 0, buffer);
  while (true) {
    THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd next, words.Next());
    if (next.kind == WordOrEnd::Kind::kFileEnd) return {};
    THIMBLE_TRY(take(next));
  }
}

// Counts the words that look like subwords: those that end in the mark, but not at the end of a
// line, where nothing continues them.
class MarkedWords {
 public:
  void Add(const WordOrEnd& next) {
    const bool is_word = next.kind == WordOrEnd::Kind::kWord;
    if (is_word && !open_.empty() && ++marked_ == 1) {
      first_ = open_;
      first_line_ = line_;
    }
    open_.clear();
    if (is_word && next.word.ends_with(kSubwordMark)) open_ = next.word;
    (is_word ? words_ : line_) += 1;
  }
  // BadInput if they are too many for text that is not split.
  Result<void> Check(const std::string& path) const {
    if (marked_ * kMostMarkedOf <= words_) return {};
    return BadInput(
        fmt::format("{}: line {}: {} has the mark of a subword, as have {} of {} words; expected "
                    "text that is not split yet",
                    path, first_line_, QuoteName(first_), marked_, words_));
  }

 private:
  int64_t line_ = 1;
  int64_t words_ = 0;
  int64_t marked_ = 0;
  std::string open_;  // the word before, if it ends in the mark
  std::string first_;
  int64_t first_line_ = 0;
};

Result<void> CheckNotSplit(const TextFile& file) {
  MarkedWords marked;
  const auto add = [&](const WordOrEnd& next) {
    marked.Add(next);
    return Result<void>();
  };
  THIMBLE_TRY(ForEachWord(file, add));
  return marked.Check(file.reader.path());
}

// The files of the text: of each part the source, then the target, the training part last. All are
// checked.
Result<std::vector<RawFile>> OpenRawText(const BitextFolder& folder) {
  std::vector<std::string> parts = {"test"};
  if (folder.has_validation) parts.emplace_back("valid");
  parts.emplace_back(kTrainPart);
  std::vector<RawFile> files;
  Crc64 unused;
  for (const std::string& part : parts) {
    THIMBLE_ASSIGN_OR_RETURN(TextFile source, OpenTextFile(folder.SourcePath(part), unused));
    THIMBLE_ASSIGN_OR_RETURN(TextFile target, OpenTextFile(folder.TargetPath(part), unused));
    THIMBLE_TRY(CheckSameLines(source, target));
    files.push_back({part, folder.source_language, std::move(source)});
    files.push_back({part, folder.target_language, std::move(target)});
  }
  for (const RawFile& file : files) THIMBLE_TRY(CheckNotSplit(file.text));
  return files;
}

Result<MergeList> LearnFrom(const std::vector<RawFile>& files, int32_t merges) {
  WordCounts words;
  for (const RawFile& file : files) {
    if (file.part == kTrainPart) THIMBLE_TRY(words.CountFile(file.text));
  }
  return LearnMerges(words, merges);
}

// The lines of a file, split.
class SplitText {
 public:
  // `dictionary` counts the subwords; may be null.
  SplitText(PreparedFile& file, SubwordSplitter& splitter, DictionaryBuilder* dictionary)
      : file_(file), splitter_(splitter), dictionary_(dictionary) {}

  Result<void> Append(const WordOrEnd& next) {
    if (next.kind == WordOrEnd::Kind::kLineEnd) {
      text_ += '\n';
      in_line_ = false;
    } else {
      THIMBLE_TRY(AppendWord(next.word));
    }
    return text_.size() < kPrepareBufferBytes ? Result<void>() : Flush();
  }
  Result<void> Flush() {
    THIMBLE_TRY(file_.Write(text_));
    text_.clear();
    return {};
  }

 private:
  Result<void> AppendWord(std::string_view word) {
    Result<void> counted;
    splitter_.Split(word, [&](std::string_view subword) {
      if (in_line_) text_ += ' ';
      in_line_ = true;
      text_ += subword;
      if (dictionary_ != nullptr && counted.ok()) counted = dictionary_->Count(subword);
    });
    return counted;
  }

  PreparedFile& file_;
  SubwordSplitter& splitter_;
  DictionaryBuilder* dictionary_;
  std::string text_;  // not written yet
  bool in_line_ = false;
};

Result<void> AddSplit(const RawFile& raw, SubwordSplitter& splitter, PreparedFolder& folder) {
  DictionaryBuilder dictionary;
  const bool is_training = raw.part == kTrainPart;
  THIMBLE_ASSIGN_OR_RETURN(PreparedFile file, folder.Create(raw.part + "." + raw.language));
  SplitText split(file, splitter, is_training ? &dictionary : nullptr);
  THIMBLE_TRY(ForEachWord(raw.text, [&](const WordOrEnd& next) { return split.Append(next); }));
  THIMBLE_TRY(split.Flush());
  THIMBLE_TRY(raw.text.reader.CheckUnchanged());
  if (is_training) {
    THIMBLE_TRY(folder.Add(fmt::format("dict.{}.txt", raw.language),
                           dictionary.Build(kDictionaryOptions).ToText()));
  }
  return folder.Keep(std::move(file));
}

Result<void> CheckOtherFolder(const PreparationOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(options.from, options.to, ignored)) return {};
  return BadInput(
      fmt::format("{}: is the folder of the text itself, expected another one", options.to));
}

}  // namespace

Result<Preparation> PrepareBitext(const PreparationOptions& options) {
  THIMBLE_ASSIGN_OR_RETURN(const BitextFolder from, FindBitext(options.from, options.languages));
  THIMBLE_TRY(CheckOtherFolder(options));
  THIMBLE_ASSIGN_OR_RETURN(const std::vector<RawFile> files, OpenRawText(from));
  auto merges = LearnFrom(files, options.merges);
  if (!merges.ok()) return WithContext(from.SourcePath(kTrainPart), merges.error());
  THIMBLE_ASSIGN_OR_RETURN(PreparedFolder to, PreparedFolder::Open(options.to, options.overwrite));
  THIMBLE_TRY(to.Add(kMergesFile, merges->ToText()));
  if (!from.has_validation) {
    for (const std::string& language : {from.source_language, from.target_language}) {
      THIMBLE_TRY(to.LeaveOut("valid." + language));
    }
  }
  SubwordSplitter splitter(*merges);
  for (const RawFile& file : files) THIMBLE_TRY(AddSplit(file, splitter, to));
  THIMBLE_TRY(to.Commit());
  return Preparation{from.source_language, from.target_language, merges->size()};
}

}  // namespace thimble
