// Feeds arbitrary bytes to the reader of merges. What it accepts is written and read again: the
// same; and it splits the bytes themselves into subwords that are joined to the same words.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/data/text/subwords/subword_splitter.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

void SplitWithMerges(const MergeList& merges, std::string_view text) {
  SubwordSplitter splitter(merges);
  for (auto word = TakeShortWord(text); !word.empty(); word = TakeShortWord(text)) {
    std::string joined;
    LineJoiner joiner(joined);
    splitter.Split(word, [&](std::string_view subword) { joiner.Append(subword); });
    joiner.Append("end");
    THIMBLE_CHECK(joined == std::string(word) + " end", "split and joined: another word");
  }
}

void ReadMerges(const ScratchFolder& folder, std::string_view bytes) {
  const std::string path = folder.Write("bpe.codes", bytes);
  const auto merges = MergeList::Read(path);
  if (!merges.ok()) return CheckError(merges.error(), path);
  const std::string text = merges->ToText();
  const auto again = MergeList::Parse(text);
  THIMBLE_CHECK(again.ok() && again->ToText() == text, "not the same when written and read");
  SplitWithMerges(*merges, bytes);
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  thimble::ReadMerges(folder, thimble::AsText(bytes, size));
  return 0;
}
