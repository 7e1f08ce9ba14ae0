// How the kernels of token_cross_entropy and top_words divide their work. Slices of the vocabulary
// and chains of tokens decide the order of additions, so they have fixed sizes; blocks of tokens
// decide only how often slices are packed, and are as large as the scratch permits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/gemm/gemm.h"
#include "thimble/graph/kernel.h"

namespace thimble {

// Words of a slice: a depth block of dx, and whole tiles of the product's kernel (14 rows, 32
// columns).
inline constexpr size_t kWordsOfSlice = 224;
// Tokens whose products are one chain in dw: nearly a depth block, and whole tiles (14 or 6 rows).
inline constexpr size_t kTokensOfChain = 252;
// Tokens of the largest block: its logits take 0.9 MB. Larger ones save less than a percent.
inline constexpr size_t kMaxTokensOfBlock = 4 * kTokensOfChain;

struct TokenSizes {
  // x (B, T, C), w (V, C).
  TokenSizes(const Shape& x, const Shape& w)
      : tokens(static_cast<size_t>(x[0] * x[1])),
        words(static_cast<size_t>(w[0])),
        channels(static_cast<size_t>(w[1])) {}

  // The logits of so many tokens for a slice.
  GemmShape Logits(size_t rows) const {
    return {rows, std::min(words, kWordsOfSlice), channels, false, true};
  }

  size_t tokens;
  size_t words;
  size_t channels;
};

inline size_t AlignedBytes(size_t bytes) { return RoundUp(bytes, 64); }
inline size_t BytesOfLogits(const GemmShape& logits) {
  return AlignedBytes(logits.rows * logits.columns * sizeof(float));
}

// Calls visit(piece) for [range.begin, range.end) in pieces of `size`.
template <class Visit>
void ForEachPieceOf(IndexRange range, size_t size, const Visit& visit) {
  for (size_t begin = range.begin; begin < range.end; begin += size) {
    visit(IndexRange{begin, std::min(range.end, begin + size)});
  }
}

// The logits (tokens, slice) of x (N, C) and w (V, C).
struct LogitsProduct {
  ConstNumbers x;
  ConstNumbers w;
  size_t channels;

  void Run(IndexRange tokens, IndexRange slice, float* logits, std::span<std::byte> scratch,
           ThreadPool& pool) const {
    const PlainPacker rows(x + tokens.begin * channels, channels);
    const TransposedPacker words(w + slice.begin * channels, channels);
    Gemm({{tokens.size(), slice.size(), channels, false, true}, rows, words, logits}, scratch,
         pool);
  }
};

}  // namespace thimble
