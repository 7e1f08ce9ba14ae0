// LogitSweep: how a kernel that needs each logit once goes through them: a block of tokens at a
// time, and for it the slices of the vocabulary in order. What it has to remember of a token is a
// State in scratch.
#pragma once

#include <algorithm>
#include <cstddef>

#include "thimble/ops/token_cross_entropy/vocabulary_slices.h"

namespace thimble {

// Scratch: the states of a block of tokens, its logits for a slice, and what the product needs.
struct LogitBlocks {
  size_t tokens = 1;  // of a block
  size_t state_bytes = 0;
  size_t logit_bytes = 0;
  size_t product_bytes = 0;
  size_t FixedBytes() const { return state_bytes + logit_bytes; }
  size_t Bytes() const { return FixedBytes() + product_bytes; }
};

// Chooses blocks within scratch.
struct LogitPlanner {
  const TokenSizes& sizes;
  size_t state_size;  // bytes, of a token
  size_t threads;

  // The largest block with which a whole slice is packed at once; the smallest if there is none.
  // Called again with the bytes these blocks need, it returns the same tokens.
  LogitBlocks Choose(size_t scratch_bytes) const {
    constexpr size_t kAny = size_t{1} << 40;
    constexpr size_t kLeast = kMaxTokensOfBlock / 16;
    if (sizes.tokens == 0) return {};
    size_t tokens = kMaxTokensOfBlock;
    for (; tokens > kLeast; tokens /= 2) {
      const LogitBlocks blocks = BlocksOf(tokens, kAny);
      if (blocks.Bytes() <= scratch_bytes) return blocks;
    }
    const size_t fixed = BlocksOf(tokens, 0).FixedBytes();
    return BlocksOf(tokens, scratch_bytes > fixed ? scratch_bytes - fixed : 0);
  }

 private:
  LogitBlocks BlocksOf(size_t block_tokens, size_t product_bytes) const {
    const size_t tokens = std::min(block_tokens, sizes.tokens);
    const GemmShape logits = sizes.Logits(tokens);
    return {tokens, AlignedBytes(tokens * state_size), BytesOfLogits(logits),
            GemmScratchBytes(logits, threads, product_bytes / threads)};
  }
};

// Of x, input 0, and w, input 1.
template <class State>
class LogitSweep {
 public:
  LogitSweep(const TokenSizes& sizes, size_t threads, size_t scratch_bytes)
      : sizes_(sizes), blocks_(LogitPlanner{sizes, sizeof(State), threads}.Choose(scratch_bytes)) {}
  static LogitSweep Of(const OpCall& call, const KernelLimits& limits) {
    const auto threads = static_cast<size_t>(limits.threads);
    return {TokenSizes(call.inputs[0], call.inputs[1]), threads,
            threads * limits.scratch_bytes_per_thread};
  }
  static LogitSweep Of(const KernelCall& call) {
    return {TokenSizes(call.in_shape(0), call.in_shape(1)),
            static_cast<size_t>(call.pool.num_threads()), call.scratch.size()};
  }

  size_t ScratchBytes() const { return blocks_.Bytes(); }

  // Calls add(state, token, row, slice) for each slice of a token, in order: `row` has its logits
  // for the words of the slice. The state is unspecified at the first. Tokens are on all threads.
  // After a token's last slice calls done(state, token), in the order of tokens.
  template <class Add, class Done>
  void Run(const KernelCall& call, const Add& add, const Done& done) const {
    const LogitsProduct product{ConstNumbersOf(call.inputs[0]), ConstNumbersOf(call.inputs[1]),
                                sizes_.channels};
    auto* states = reinterpret_cast<State*>(call.scratch.data());
    auto* logits = reinterpret_cast<float*>(call.scratch.data() + blocks_.state_bytes);
    const auto rest = call.scratch.subspan(blocks_.FixedBytes());
    ForEachPieceOf({0, sizes_.tokens}, blocks_.tokens, [&](IndexRange block) {
      ForEachPieceOf({0, sizes_.words}, kWordsOfSlice, [&](IndexRange slice) {
        product.Run(block, slice, logits, rest, call.pool);
        ForEachToken(call.pool, block.size(), [&](size_t i) {
          add(states[i], block.begin + i, logits + i * slice.size(), slice);
        });
      });
      for (size_t i = 0; i < block.size(); ++i) done(states[i], block.begin + i);
    });
  }

 private:
  template <class Body>
  static void ForEachToken(ThreadPool& pool, size_t tokens, const Body& body) {
    constexpr size_t kTokensOfChunk = 16;  // 4 us: long compared with the cost of taking a chunk
    pool.Run(CeilDivide(tokens, kTokensOfChunk), [&](size_t chunk, size_t /*thread*/) {
      const size_t end = std::min(tokens, (chunk + 1) * kTokensOfChunk);
      for (size_t i = chunk * kTokensOfChunk; i < end; ++i) body(i);
    });
  }

  TokenSizes sizes_;
  LogitBlocks blocks_;
};

}  // namespace thimble
