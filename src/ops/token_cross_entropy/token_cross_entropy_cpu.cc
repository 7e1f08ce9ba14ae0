#include <cmath>
#include <limits>

#include "thimble/ops/softmax_cross_entropy/softmax_row.h"
#include "thimble/ops/token_cross_entropy/smoothed_targets.h"
#include "thimble/ops/token_cross_entropy/token_cross_entropy.h"
#include "thimble/ops/token_cross_entropy/vocabulary_slices.h"

namespace thimble {
namespace {

// The softmax of one token over the slices so far.
struct TokenState {
  double others;  // as in RowSoftmax
  double sum;     // of the logits
  float largest;
  float target;  // the target's logit
  int32_t best;

  void AddSlice(const float* row, IndexRange slice, int32_t target_word) {
    if (slice.begin > 0 && !(LargestOfRow(row, slice.size()) > largest)) {
      others += SumOfExponentials(row, slice.size(), largest);
    } else {
      AddLargerSlice(RowSoftmax(row, slice.size()), slice.begin);
    }
    sum += SumOfRow(row, slice.size());
    const auto word = static_cast<size_t>(target_word);
    if (target_word >= 0 && word >= slice.begin && word < slice.end) {
      target = row[word - slice.begin];
    }
  }

 private:
  // The first slice, or one with a larger logit than all before.
  void AddLargerSlice(const RowSoftmax& slice, size_t first_word) {
    if (first_word == 0) {
      *this = {};
      others = slice.others;
    } else {
      const double factor = std::exp(static_cast<double>(largest) - slice.largest);
      others = slice.others + (others + 1) * factor;
    }
    largest = slice.largest;
    best = static_cast<int32_t>(first_word + slice.best);
  }
};

struct TokenTotals {
  double loss = 0;
  double nll = 0;
  int32_t correct = 0;

  void Add(const TokenState& token, int32_t target, const SmoothedTargets& smoothed) {
    if (!smoothed.Counts(target)) return;
    if (!smoothed.InRange(target)) {
      loss += std::numeric_limits<double>::quiet_NaN();
      nll += std::numeric_limits<double>::quiet_NaN();
      return;
    }
    // Relative to the largest logit.
    const double log_sum = std::log1p(token.others);
    const double own = log_sum - (static_cast<double>(token.target) - token.largest);
    const double mean = token.sum / static_cast<double>(smoothed.words);
    nll += own;
    loss += smoothed.at_target() * own;
    if (smoothed.smoothing > 0) loss += smoothed.smoothing * (log_sum - (mean - token.largest));
    correct += !std::isnan(log_sum) && token.best == target ? 1 : 0;
  }
};

// Scratch: the states of a block of tokens, its logits for a slice, and what the product needs.
struct ForwardBlocks {
  size_t tokens;  // of a block
  size_t state_bytes;
  size_t logit_bytes;
  size_t product_bytes;
  size_t Bytes() const { return state_bytes + logit_bytes + product_bytes; }
};

ForwardBlocks ForwardBlocksOf(const TokenSizes& sizes, size_t tokens, size_t threads,
                              size_t bytes) {
  const GemmShape logits = sizes.Logits(tokens);
  return {tokens, AlignedBytes(tokens * sizeof(TokenState)), BytesOfLogits(logits),
          GemmScratchBytes(logits, threads, bytes / threads)};
}

// The largest block with which a whole slice is packed at once; the smallest if there is none.
// Called again with the bytes these blocks need, it returns the same tokens.
ForwardBlocks ChooseForwardBlocks(const TokenSizes& sizes, size_t threads, size_t scratch_bytes) {
  constexpr size_t kAny = size_t{1} << 40;
  constexpr size_t kLeast = kMaxTokensOfBlock / 16;
  size_t tokens = kMaxTokensOfBlock;
  for (; tokens > kLeast; tokens /= 2) {
    const ForwardBlocks blocks =
        ForwardBlocksOf(sizes, std::min(tokens, sizes.tokens), threads, kAny);
    if (blocks.Bytes() <= scratch_bytes) return blocks;
  }
  const ForwardBlocks least = ForwardBlocksOf(sizes, std::min(tokens, sizes.tokens), threads, 0);
  const size_t fixed_bytes = least.state_bytes + least.logit_bytes;
  return ForwardBlocksOf(sizes, least.tokens, threads,
                         scratch_bytes > fixed_bytes ? scratch_bytes - fixed_bytes : 0);
}

}  // namespace

size_t TokenCrossEntropyCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const TokenSizes sizes(call.inputs[1], call.inputs[2]);
  if (sizes.tokens == 0) return 0;
  const auto threads = static_cast<size_t>(limits.threads);
  return ChooseForwardBlocks(sizes, threads, threads * limits.scratch_bytes_per_thread).Bytes();
}

void TokenCrossEntropyCpu::Run(const KernelCall& call) {
  constexpr size_t kTokensOfChunk = 16;  // 4 us: long compared with the cost of taking a chunk
  const TokenSizes sizes(call.in_shape(1), call.in_shape(2));
  const SmoothedTargets smoothed(call.attributes, call.in_shape(1)[0]);
  const LogitsProduct product{ConstNumbersOf(call.inputs[0]), ConstNumbersOf(call.inputs[1]),
                              sizes.channels};
  const int32_t* targets = call.In<int32_t>(2);
  float* log_sums = call.Out<float>(3);
  TokenTotals totals;
  const auto blocks = sizes.tokens == 0
                          ? ForwardBlocks{1, 0, 0, 0}
                          : ChooseForwardBlocks(sizes, static_cast<size_t>(call.pool.num_threads()),
                                                call.scratch.size());
  auto* states = reinterpret_cast<TokenState*>(call.scratch.data());
  auto* logits = reinterpret_cast<float*>(call.scratch.data() + blocks.state_bytes);
  const auto rest = call.scratch.subspan(blocks.state_bytes + blocks.logit_bytes);
  ForEachPieceOf({0, sizes.tokens}, blocks.tokens, [&](IndexRange block) {
    ForEachPieceOf({0, sizes.words}, kWordsOfSlice, [&](IndexRange slice) {
      product.Run(block, slice, logits, rest, call.pool);
      call.pool.Run(CeilDivide(block.size(), kTokensOfChunk), [&](size_t chunk, size_t) {
        const size_t end = std::min(block.size(), (chunk + 1) * kTokensOfChunk);
        for (size_t i = chunk * kTokensOfChunk; i < end; ++i) {
          states[i].AddSlice(logits + i * slice.size(), slice, targets[block.begin + i]);
        }
      });
    });
    for (size_t i = 0; i < block.size(); ++i) {
      const double log_sum = std::log1p(states[i].others) + states[i].largest;
      log_sums[block.begin + i] = static_cast<float>(log_sum);
      totals.Add(states[i], targets[block.begin + i], smoothed);
    }
  });
  call.Out<float>(0)[0] = static_cast<float>(totals.loss);
  call.Out<float>(1)[0] = static_cast<float>(totals.nll);
  call.Out<int32_t>(2)[0] = totals.correct;
}

}  // namespace thimble
