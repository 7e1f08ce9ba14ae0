// The formula of top_words.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/token_cross_entropy/reference.h"

namespace thimble {

struct TopWordsReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t channels = call.in_shape(1)[1];
    for (int64_t i = 0; i < call.out_shape(2).elements(); ++i) {
      const auto logits =
          LogitsOfToken(call.In(0) + i * channels, call.In(1), call.in_shape(1)[0], channels);
      RunToken(call, logits, i);
    }
  }

 private:
  template <class T>
  static void RunToken(const ReferenceCall<T>& call, const std::vector<T>& logits, int64_t i) {
    const Attributes& attributes = call.op.attributes;
    const TokenSoftmax<T> softmax(logits);
    const auto log_probability = [&](int64_t word) {
      return (logits[static_cast<size_t>(word)] - softmax.largest) - softmax.log_sum;
    };
    const bool known = !std::isnan(RealPart(softmax.log_sum));
    const auto candidates = Candidates(logits, attributes.Int("first_word"), known);
    const int64_t count = attributes.Int("count");
    for (int64_t k = 0; k < count; ++k) {
      const int32_t word = candidates[static_cast<size_t>(k)];
      call.template OutAs<int32_t>(0)[i * count + k] = word;
      call.Out(1)[i * count + k] = log_probability(word);
    }
    call.Out(2)[i] = log_probability(attributes.Int("end"));
  }

  // The words from first_word on; if `ranked`, the likeliest first.
  template <class T>
  static std::vector<int32_t> Candidates(const std::vector<T>& logits, int64_t first_word,
                                         bool ranked) {
    std::vector<int32_t> words(logits.size() - static_cast<size_t>(first_word));
    std::iota(words.begin(), words.end(), static_cast<int32_t>(first_word));
    const auto is_likelier = [&](int32_t a, int32_t b) {
      return RealPart(logits[static_cast<size_t>(a)]) > RealPart(logits[static_cast<size_t>(b)]);
    };
    if (ranked) std::stable_sort(words.begin(), words.end(), is_likelier);
    return words;
  }
};

}  // namespace thimble
