// The logits of some hypotheses at a time are in scratch. A block of threads takes one's row, and
// finds one of its words after the other: reading a row again costs little, it is in the cache.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/token_cross_entropy/token_rows.cuh"
#include "thimble/ops/top_words/top_words.h"

namespace thimble {
namespace {

struct WordSearch {
  int vocabulary, count, first_word, end;
};

struct FoundWords {
  int32_t* words;            // (hypotheses, M)
  float* log_probabilities;  // (hypotheses, M)
  float* ends;               // (hypotheses)
};

// The best word behind `before` in their order; the best of all if there is none before.
__device__ WordLogit NextWord(const float* row, const WordSearch& search, const WordLogit& before) {
  WordLogit best{0, -1};
  ForEachWord(search.first_word, search.vocabulary, [&](int v) {
    const bool is_behind =
        before.word < 0 || row[v] < before.logit || (row[v] == before.logit && v > before.word);
    if (is_behind) best.TakeBetter({row[v], v});
  });
  return BestOfBlock(best);
}

__global__ void __launch_bounds__(kLogitThreads)
    TopWordsKernel(WordSearch search, const float* logits, int64_t first, FoundWords found) {
  WaitForKernelsBefore();
  const int64_t hypothesis = first + blockIdx.x;
  const float* row = logits + int64_t{blockIdx.x} * search.vocabulary;
  const RowOfLogits softmax = MeasureRow(row, search.vocabulary);
  const bool known = softmax.log_sum == softmax.log_sum;
  WordLogit word{0, -1};
  for (int k = 0; k < search.count; ++k) {
    if (known) {
      word = NextWord(row, search, word);
    } else {
      word = {nanf(""), search.first_word + k};
    }
    if (threadIdx.x != 0) continue;
    const int64_t place = hypothesis * search.count + k;
    found.words[place] = word.word;
    found.log_probabilities[place] = (word.logit - softmax.best.logit) - softmax.log_sum;
  }
  if (threadIdx.x != 0) return;
  found.ends[hypothesis] = (row[search.end] - softmax.best.logit) - softmax.log_sum;
}

void RunTopWords(const KernelCall& call, Math math) {
  const TokenMatrix m(call.in_shape(0), call.in_shape(1));
  const auto of = [&](const char* name) { return static_cast<int>(call.attributes.Int(name)); };
  const WordSearch search{static_cast<int>(m.words), of("count"), of("first_word"), of("end")};
  const FoundWords found{call.Out<int32_t>(0), call.Out<float>(1), call.Out<float>(2)};
  auto* logits = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
  const int64_t at_once = m.TokensAtOnce(sizeof(float));
  for (int64_t first = 0; first < m.tokens; first += at_once) {
    const int64_t count = std::min(at_once, m.tokens - first);
    LaunchLogits(call.stream, m, math, ConstNumbersOf(call.inputs[0]),
                 ConstNumbersOf(call.inputs[1]), first, count, logits);
    TopWordsKernel<<<static_cast<unsigned>(count), kLogitThreads, 0, call.stream>>>(search, logits,
                                                                                    first, found);
    THIMBLE_CUDA_LAUNCHED();
  }
}

}  // namespace

std::string_view TopWordsShortCuda::Declines(const OpCall& call) {
  if (!IsShortNumber(call.input_type(0)) || call.input_type(0) != call.input_type(1)) {
    return "takes x and w of the same 16-bit type only";
  }
  return TopWordsTf32Cuda::Declines(call);
}
void TopWordsShortCuda::Run(const KernelCall& call) {
  RunTopWords(call, call.inputs[0].dtype == DType::kF16 ? Math::kF16 : Math::kBF16);
}

std::string_view TopWordsTf32Cuda::Declines(const OpCall& call) {
  const TokenMatrix m(call.inputs[0], call.inputs[1]);
  return FitsTokenProducts(m) ? "" : "a size is too large";
}
size_t TopWordsTf32Cuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const TokenMatrix m(call.inputs[0], call.inputs[1]);
  return static_cast<size_t>(m.TokensAtOnce(sizeof(float)) * m.words) * sizeof(float);
}
void TopWordsTf32Cuda::Run(const KernelCall& call) { RunTopWords(call, Math::kTf32); }
void TopWordsFp32Cuda::Run(const KernelCall& call) { RunTopWords(call, Math::kFp32); }

}  // namespace thimble
