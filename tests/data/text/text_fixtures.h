// Data sets of text for tests: pairs of given lengths, and folders of parallel text.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/data/fake_dataset.h"
#include "thimble/base/philox.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {

// Pairs of these lengths. The tokens of pair i are the number 4 + i, so that a batch shows which
// pairs it has.
class NumberedPairs final : public TextDataset {
 public:
  explicit NumberedPairs(std::vector<PairLength> lengths) : lengths_(std::move(lengths)) {}

  const Dictionary& source_dictionary() const override { return dictionary_; }
  const Dictionary& target_dictionary() const override { return dictionary_; }
  int64_t size() const override { return std::ssize(lengths_); }
  PairLength LengthAt(int64_t index) const override { return lengths_[index]; }
  Result<void> Read(int64_t index, std::span<int32_t> source,
                    std::span<int32_t> target) const override {
    if (index == broken_index) return Failed("broken pair");
    for (std::span<int32_t> ids : {source, target}) {
      std::fill(ids.begin(), ids.end(), static_cast<int32_t>(4 + index));
      ids.back() = Dictionary::kEnd;
    }
    return {};
  }
  Result<std::string> SourceLine(int64_t) const override { return std::string(); }
  Result<std::string> TargetLine(int64_t) const override { return std::string(); }

  int64_t broken_index = -1;  // reading it fails

 private:
  static constexpr std::array<std::string_view, 1> kWords = {"word"};

  std::vector<PairLength> lengths_;
  Dictionary dictionary_{kWords};
};

// Lengths like those of real text: mostly short, few long, target and source alike.
inline std::vector<PairLength> RandomLengths(int64_t pairs, int32_t longest, uint64_t seed) {
  const RandomSource source(seed, RandomPurpose::kTest);
  std::vector<PairLength> lengths;
  for (int64_t i = 0; i < pairs; ++i) {
    const auto words = source.Words(0, static_cast<uint32_t>(i), 0);
    const float share = UniformFloat(words[0]) * UniformFloat(words[1]);
    const auto length = static_cast<int32_t>(1 + share * static_cast<float>(longest - 1));
    const int32_t other = length * 3 / 4 + static_cast<int32_t>(UniformBelow(words[2], 1 + length));
    lengths.push_back({length, std::clamp(other, 1, longest)});
  }
  return lengths;
}

// A folder that OpenBitext accepts: three pairs to train, two to validate, two to test.
inline void WriteBitext(const TestFolder& folder) {
  folder.Write("train.de", "ein haus\nzwei häu@@ ser .\nein ga@@ rten\n");
  folder.Write("train.en", "a house\ntwo houses .\na gar@@ den\n");
  folder.Write("valid.de", "ein haus .\nzwei gärten\n");
  folder.Write("valid.en", "a house .\ntwo gardens\n");
  folder.Write("test.de", "zwei ga@@ rten\nein haus\n");
  folder.Write("test.en", "two gar@@ den\na house\n");
}

}  // namespace thimble
