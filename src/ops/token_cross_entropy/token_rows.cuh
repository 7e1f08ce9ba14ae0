// Rows of logits on a GPU, as token_cross_entropy and top_words compute them: those of some tokens
// at a time, each with the whole vocabulary.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/product/matrix_product.h"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/graph/kernel.h"

namespace thimble {

inline constexpr int kLogitThreads = 256;
inline constexpr int kLogitWarps = kLogitThreads / kWarpLanes;

// x (..., C) with N tokens, w (V, C).
struct TokenMatrix {
  int64_t tokens, words, channels;

  TokenMatrix(const Shape& x, const Shape& w) : tokens(x[0] * x[1]), words(w[0]), channels(w[1]) {}

  // Tokens whose logits exist at the same time, with so many bytes for each of them.
  int64_t TokensAtOnce(int64_t logit_bytes) const {
    // Tens of megabytes: enough work for a GPU in one product.
    constexpr int64_t kMostBytes = int64_t{32} << 20;
    constexpr int64_t kTile = 128;   // rows of a product's tile
    constexpr int64_t kFewest = 16;  // in large vocabularies
    const int64_t fitting = kMostBytes / std::max<int64_t>(1, words * logit_bytes);
    const int64_t whole = fitting >= kTile ? fitting / kTile * kTile : fitting;
    return std::clamp<int64_t>(whole, std::min(kFewest, tokens), tokens);
  }
};

inline bool FitsTokenProducts(const TokenMatrix& m) {
  const int64_t largest = std::max({m.tokens, m.words, m.channels});
  return FitsMatrixProduct(largest, largest, largest);
}

// Tokens [first, first + count) of x (N, C) times w (V, C) transposed: logits (count, V).
inline void LaunchLogits(cudaStream_t stream, const TokenMatrix& m, Math math, ConstNumbers x,
                         ConstNumbers w, int64_t first, int64_t count, float* logits) {
  LaunchMatrixProduct(stream,
                      {.rows = count,
                       .columns = m.words,
                       .inner = m.channels,
                       .a = {x + static_cast<size_t>(first * m.channels)},
                       .b = {w},
                       .result = logits},
                      math);
}

// A word and its logit. Of equal logits the first word wins.
struct WordLogit {
  float logit;
  int word;  // negative: none

  __device__ void TakeBetter(const WordLogit& other) {
    if (other.word < 0) return;
    const bool wins = other.logit > logit || (other.logit == logit && other.word < word);
    if (word < 0 || wins) *this = other;
  }
};

// The best of all threads' words, for all of them. Called by all threads of a block.
__device__ inline WordLogit BestOfBlock(WordLogit mine) {
  __shared__ WordLogit of_warps[kLogitWarps];
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const float logit = __shfl_xor_sync(0xFFFFFFFFU, mine.logit, distance);
    const int word = __shfl_xor_sync(0xFFFFFFFFU, mine.word, distance);
    mine.TakeBetter({logit, word});
  }
  __syncthreads();  // those of an earlier call may still be read
  if (threadIdx.x % kWarpLanes == 0) of_warps[threadIdx.x / kWarpLanes] = mine;
  __syncthreads();
  mine = of_warps[0];
  for (int warp = 1; warp < kLogitWarps; ++warp) mine.TakeBetter(of_warps[warp]);
  return mine;
}

// The sum of all threads' numbers, as a fixed tree, for all of them. Called by all threads.
__device__ inline float SumOfBlock(float mine) {
  __shared__ float of_warps[kLogitWarps];
  mine = WarpSum(mine);
  __syncthreads();  // those of an earlier call may still be read
  if (threadIdx.x % kWarpLanes == 0) of_warps[threadIdx.x / kWarpLanes] = mine;
  __syncthreads();
  mine = of_warps[0];
  for (int warp = 1; warp < kLogitWarps; ++warp) mine += of_warps[warp];
  return mine;
}

// Calls visit(word) for this thread's words of [first, words).
template <class Visit>
__device__ void ForEachWord(int first, int words, const Visit& visit) {
  for (int v = first + static_cast<int>(threadIdx.x); v < words; v += kLogitThreads) visit(v);
}

// A row's softmax. NaN, or a largest logit that is infinite, makes log_sum NaN.
struct RowOfLogits {
  WordLogit best;
  float log_sum;    // of the exponentials relative to the best
  float distances;  // the sum of all logits relative to the best
};

// Called by all threads of a block, which get the same bits.
__device__ inline RowOfLogits MeasureRow(const float* logits, int words) {
  WordLogit best{0, -1};
  ForEachWord(0, words, [&](int v) { best.TakeBetter({logits[v], v}); });
  best = BestOfBlock(best);
  float sum = 0;
  float distances = 0;
  ForEachWord(0, words, [&](int v) {
    const float distance = logits[v] - best.logit;
    sum += expf(distance);
    distances += distance;
  });
  return {best, logf(SumOfBlock(sum)), SumOfBlock(distances)};
}

}  // namespace thimble
