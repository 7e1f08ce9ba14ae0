// Feeds arbitrary bytes to the reader of parallel text and reads every pair it accepts, alone and
// in batches. The first byte selects the file that the remaining bytes replace and the length of
// the longest sentence; the other files are valid.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/check_error.h"
#include "fuzz/scratch_folder.h"
#include "thimble/data/text/bitext.h"
#include "thimble/data/text/token_batches.h"

namespace thimble {
namespace {

struct ValidFile {
  const char* name;
  const char* content;
};
constexpr std::array<ValidFile, 8> kValidFiles = {{{"train.de", "ein haus\nzwei häu@@ ser .\n"},
                                                   {"train.en", "a house\ntwo houses .\n"},
                                                   {"valid.de", "ein haus .\n"},
                                                   {"valid.en", "a house .\n"},
                                                   {"test.de", "zwei gärten\nein haus\n"},
                                                   {"test.en", "two gardens\na house\n"},
                                                   {"dict.de.txt", "ein 2\nhaus 1\n"},
                                                   {"dict.en.txt", "a 1\nhouse 1\n"}}};
// Without the dictionaries, which are then built from the text.
constexpr size_t kTextFiles = 6;

void ReadAllPairs(const TextDataset& dataset, int32_t max_tokens) {
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const PairLength length = dataset.LengthAt(i);
    THIMBLE_CHECK(length.source >= 1 && length.source <= max_tokens && length.target >= 1 &&
                      length.target <= max_tokens,
                  "lengths {} and {}", length.source, length.target);
    std::vector<int32_t> source(static_cast<size_t>(length.source));
    std::vector<int32_t> target(static_cast<size_t>(length.target));
    THIMBLE_CHECK(dataset.Read(i, source, target).ok(), "an accepted pair cannot be read");
    const auto known = [&](int32_t id) {
      return id > Dictionary::kPad && id < dataset.source_dictionary().size();
    };
    THIMBLE_CHECK(std::all_of(source.begin(), source.end(), known), "an index out of range");
    const auto line = dataset.SourceLine(i);
    THIMBLE_CHECK(line.ok() && IsUtf8(*line), "a line that is not UTF-8");
  }
}

void ReadAllBatches(const TextDataset& dataset, int32_t max_tokens) {
  const TokenBatches batches(dataset, {.max_tokens = max_tokens, .max_shapes = 4}, 1);
  int64_t pairs = 0;
  for (int64_t step = 0; step < batches.batches_per_epoch(); ++step) {
    pairs += batches.BatchAt(step).pairs;
  }
  THIMBLE_CHECK(pairs == dataset.size(), "{} of {} pairs in an epoch", pairs, dataset.size());
}

void OpenAndReadBitext(const ScratchFolder& folder, uint8_t choice, std::string_view bytes) {
  const size_t place = choice % kValidFiles.size();
  const bool dictionaries = place >= kTextFiles || choice & 0x40;
  const int32_t max_tokens = choice & 0x80 ? 4 : 1024;
  for (size_t i = 0; i < kValidFiles.size(); ++i) {
    if (i < kTextFiles || dictionaries) {
      folder.Write(kValidFiles[i].name, kValidFiles[i].content);
    } else {
      std::filesystem::remove(folder.path() + "/" + kValidFiles[i].name);
    }
  }
  folder.Write(kValidFiles[place].name, bytes);
  const auto data = OpenBitext(folder.path(), "", {.max_sentence_tokens = max_tokens});
  if (!data.ok()) return CheckError(data.error(), folder.path());
  for (const TextDataset* dataset : {data->train.get(), data->validation.get(), data->test.get()}) {
    ReadAllPairs(*dataset, max_tokens);
    ReadAllBatches(*dataset, max_tokens);
  }
}

}  // namespace
}  // namespace thimble

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const thimble::ScratchFolder folder;
  if (size > 0) {
    thimble::OpenAndReadBitext(folder, bytes[0], thimble::AsText(bytes + 1, size - 1));
  }
  return 0;
}
