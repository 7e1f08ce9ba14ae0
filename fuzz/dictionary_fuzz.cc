// Feeds arbitrary bytes to the reader of dictionaries. What it accepts is looked up, written and
// read again: the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/data/text/dictionary.h"

namespace thimble {
namespace {

void ReadDictionary(const ScratchFolder& folder, std::string_view bytes) {
  const std::string path = folder.Write("dict.de.txt", bytes);
  const auto dictionary = Dictionary::Read(path);
  if (!dictionary.ok()) return CheckError(dictionary.error(), path);
  std::vector<int32_t> all;
  for (int32_t i = Dictionary::kNumSpecial; i < dictionary->size(); ++i) {
    THIMBLE_CHECK(dictionary->Find(dictionary->word(i)) == i, "word {} is not found", i);
    all.push_back(i);
  }
  THIMBLE_CHECK(IsUtf8(dictionary->Line(all)), "words that are not UTF-8");
  const std::string text = dictionary->ToText();
  const auto again = Dictionary::Read(folder.Write("dict.en.txt", text));
  THIMBLE_CHECK(again.ok() && again->ToText() == text, "not the same when written and read");
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  thimble::ReadDictionary(folder, thimble::AsText(bytes, size));
  return 0;
}
