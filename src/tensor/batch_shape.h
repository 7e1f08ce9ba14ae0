// BatchShape: how many samples a batch has and, if they are pairs of sentences, to how many
// positions they are padded. Every shape has plans of its own.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>

namespace thimble {

struct BatchShape {
  int64_t samples = 0;
  // Tokens of each sentence, padding included; 0 if samples are not sentences.
  int64_t source_length = 0;
  int64_t target_length = 0;

  bool has_sentences() const { return source_length > 0; }
  // What --batch and --microbatch count for each sample: 1, or the positions of the longer side.
  int64_t sample_size() const { return std::max({int64_t{1}, source_length, target_length}); }
  int64_t size() const { return samples * sample_size(); }
  // Some of the samples, of the same lengths.
  BatchShape With(int64_t some_samples) const {
    return {some_samples, source_length, target_length};
  }
  friend auto operator<=>(const BatchShape&, const BatchShape&) = default;
};

// "100"; for sentences "160x25+25".
std::string ToString(const BatchShape& shape);

}  // namespace thimble
