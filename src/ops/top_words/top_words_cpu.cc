#include <algorithm>
#include <cmath>
#include <numeric>

#include "thimble/ops/token_cross_entropy/logit_sweep.h"
#include "thimble/ops/token_cross_entropy/running_softmax.h"
#include "thimble/ops/top_words/top_words.h"

namespace thimble {
namespace {

struct RankedWords {
  explicit RankedWords(const KernelCall& call)
      : count(static_cast<size_t>(call.attributes.Int("count"))),
        first_word(static_cast<size_t>(call.attributes.Int("first_word"))),
        end(static_cast<size_t>(call.attributes.Int("end"))),
        words(call.Out<int32_t>(0)),
        numbers(call.Out<float>(1)),
        end_numbers(call.Out<float>(2)) {}

  size_t count;
  size_t first_word;
  size_t end;
  int32_t* words;      // (B * N, M)
  float* numbers;      // (B * N, M)
  float* end_numbers;  // (B * N)
};

// The outputs of one hypothesis. While the slices of the vocabulary come, they hold the likeliest
// words so far and the logits of those words and of the end: no scratch is needed for them.
class Ranking {
 public:
  Ranking(const RankedWords& ranked, size_t token)
      : ranked_(ranked),
        words_(ranked.words + token * ranked.count),
        numbers_(ranked.numbers + token * ranked.count),
        end_number_(ranked.end_numbers[token]) {}

  void AddSlice(const float* row, IndexRange slice) {
    const size_t end = ranked_.end;
    if (end >= slice.begin && end < slice.end) end_number_ = row[end - slice.begin];
    // The first candidates fill the list, even with NaN.
    size_t word = std::max(slice.begin, ranked_.first_word);
    const size_t filled_at = std::min(slice.end, ranked_.first_word + ranked_.count);
    for (; word < filled_at; ++word) {
      Insert(word, row[word - slice.begin], word - ranked_.first_word);
    }
    for (; word < slice.end; ++word) {
      word += FirstAbove(row + (word - slice.begin), slice.end - word, numbers_[ranked_.count - 1]);
      if (word == slice.end) return;
      Insert(word, row[word - slice.begin], ranked_.count - 1);
    }
  }

  // From logits to log probabilities.
  void Finish(const RunningSoftmax& softmax) {
    const double log_sum = softmax.LogSum();
    const auto log_probability = [&](float logit) {
      return static_cast<float>((static_cast<double>(logit) - softmax.largest) - log_sum);
    };
    if (std::isnan(log_sum)) {
      std::iota(words_, words_ + ranked_.count, static_cast<int32_t>(ranked_.first_word));
    }
    std::transform(numbers_, numbers_ + ranked_.count, numbers_, log_probability);
    end_number_ = log_probability(end_number_);
  }

 private:
  // Puts a word behind the likelier and equally likely ones of the first `kept`, and moves the
  // others down.
  void Insert(size_t word, float logit, size_t kept) {
    size_t place = kept;
    for (; place > 0 && numbers_[place - 1] < logit; --place) {
      numbers_[place] = numbers_[place - 1];
      words_[place] = words_[place - 1];
    }
    numbers_[place] = logit;
    words_[place] = static_cast<int32_t>(word);
  }

  const RankedWords& ranked_;
  int32_t* words_;
  float* numbers_;
  float& end_number_;
};

}  // namespace

size_t TopWordsCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return LogitSweep<RunningSoftmax>::Of(call, limits).ScratchBytes();
}

void TopWordsCpu::Run(const KernelCall& call) {
  const RankedWords ranked(call);
  LogitSweep<RunningSoftmax>::Of(call).Run(
      call,
      [&](RunningSoftmax& softmax, size_t token, const float* row, IndexRange slice) {
        softmax.AddSlice(row, slice);
        Ranking(ranked, token).AddSlice(row, slice);
      },
      [&](const RunningSoftmax& softmax, size_t token) { Ranking(ranked, token).Finish(softmax); });
}

}  // namespace thimble
