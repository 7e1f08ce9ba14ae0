// Per slice of the vocabulary: the logits of a block of tokens become the loss's derivatives by
// them (factors), from which the slice's part of dw and dx is summed, both in floats.
//
// Sums that their tensor cannot hold because it stores 16 bits are kept in scratch: those of dw for
// one slice, those of dx for as many tokens as fit. The factors of other tokens are computed again
// for them, in further sweeps over the vocabulary.
#include <cmath>
#include <limits>

#include "thimble/ops/softmax_cross_entropy/softmax_row.h"
#include "thimble/ops/token_cross_entropy/smoothed_targets.h"
#include "thimble/ops/token_cross_entropy/token_cross_entropy.h"
#include "thimble/ops/token_cross_entropy/vocabulary_slices.h"

namespace thimble {
namespace {

// Rows of a matrix of sums that are rounded to 16 bits when they are complete.
void StoreSums(const float* sums, size_t rows, size_t columns, Numbers to, ThreadPool& pool) {
  pool.Run(rows, [&](size_t row, size_t /*thread*/) {
    EncodeNumbers(sums + row * columns, columns, to + row * columns);
  });
}

struct GradientBlocks {
  size_t tokens = 0;       // of a block
  size_t kept_tokens = 0;  // whose dx is summed in one sweep
  size_t factor_bytes = 0;
  size_t dw_bytes = 0;  // of the sums in scratch
  size_t dx_bytes = 0;
  size_t product_bytes = 0;
  size_t FixedBytes() const { return factor_bytes + dw_bytes + dx_bytes; }
  size_t Bytes() const { return FixedBytes() + product_bytes; }
};

// Chooses blocks within scratch.
class GradientPlanner {
 public:
  GradientPlanner(const TokenSizes& sizes, bool short_dx, bool short_dw, size_t threads)
      : sizes_(sizes), short_dx_(short_dx), short_dw_(short_dw), threads_(threads) {}

  // Called again with the bytes these blocks need, it returns the same tokens and kept tokens.
  GradientBlocks Choose(size_t scratch_bytes) const {
    const size_t kept = short_dx_ ? KeptTokens(scratch_bytes) : sizes_.tokens;
    for (size_t tokens = kMaxTokensOfBlock; tokens > kTokensOfChain; tokens -= kTokensOfChain) {
      const GradientBlocks blocks = BlocksOf(tokens, kept, kAny);
      if (blocks.Bytes() <= scratch_bytes) return blocks;
    }
    const size_t fixed = BlocksOf(kTokensOfChain, kept, 0).FixedBytes();
    return BlocksOf(kTokensOfChain, kept, scratch_bytes > fixed ? scratch_bytes - fixed : 0);
  }

 private:
  static constexpr size_t kAny = size_t{1} << 40;
  // Beyond this, memory would be worth more than the time saved.
  static constexpr size_t kMostSumBytes = size_t{4} << 20;
  // With fewer the products are slow.
  static constexpr size_t kLeastKept = kTokensOfChain / 4;

  // The tokens whose sums fit beside products of moderate size.
  size_t KeptTokens(size_t scratch_bytes) const {
    constexpr size_t kProductBytes = size_t{128} << 10;  // of each thread
    const size_t others = BlocksOf(kTokensOfChain, 0, threads_ * kProductBytes).Bytes();
    const size_t room = scratch_bytes > others ? scratch_bytes - others : 0;
    const size_t row_bytes = std::max<size_t>(64, sizes_.channels * sizeof(float));
    const size_t kept = std::min(room, kMostSumBytes) / row_bytes / kLeastKept * kLeastKept;
    return std::min(sizes_.tokens, std::max(kept, kLeastKept));
  }

  GradientBlocks BlocksOf(size_t block_tokens, size_t kept, size_t product_bytes) const {
    const size_t tokens = std::min(block_tokens, sizes_.tokens);
    const size_t words = std::min(sizes_.words, kWordsOfSlice);
    const GemmShape products[] = {
        sizes_.Logits(tokens),
        {tokens, sizes_.channels, words, false, true},
        {words, sizes_.channels, std::min(tokens, kTokensOfChain), false, true}};
    GradientBlocks blocks{tokens, kept, BytesOfLogits(products[0])};
    if (short_dw_) blocks.dw_bytes = AlignedBytes(words * sizes_.channels * sizeof(float));
    if (short_dx_) blocks.dx_bytes = AlignedBytes(kept * sizes_.channels * sizeof(float));
    for (const GemmShape& product : products) {
      blocks.product_bytes = std::max(
          blocks.product_bytes, GemmScratchBytes(product, threads_, product_bytes / threads_));
    }
    return blocks;
  }

  const TokenSizes& sizes_;
  bool short_dx_;
  bool short_dw_;
  size_t threads_;
};

GradientBlocks ChooseGradientBlocks(const TokenSizes& sizes, DType dx, DType dw, size_t threads,
                                    size_t scratch_bytes) {
  if (sizes.tokens == 0) return {.tokens = 1, .kept_tokens = 1};
  return GradientPlanner(sizes, IsShortNumber(dx), IsShortNumber(dw), threads)
      .Choose(scratch_bytes);
}

class TokenGradientRun {
 public:
  explicit TokenGradientRun(const KernelCall& call)
      : call_(call),
        sizes_(call.in_shape(0), call.in_shape(1)),
        smoothed_(call.attributes, call.in_shape(1)[0]),
        x_(ConstNumbersOf(call.inputs[0])),
        w_(ConstNumbersOf(call.inputs[1])),
        dx_(NumbersOf(call.outputs[0])),
        dw_(NumbersOf(call.outputs[1])),
        blocks_(ChooseGradientBlocks(sizes_, dx_.type, dw_.type,
                                     static_cast<size_t>(call.pool.num_threads()),
                                     call.scratch.size())) {}

  void Run() const {
    if (sizes_.tokens == 0) return ClearGradient();
    ForEachPieceOf({0, sizes_.tokens}, blocks_.kept_tokens, [&](IndexRange kept) {
      // The first sweep needs the factors of all tokens, for dw.
      Sweep(kept.begin == 0 ? IndexRange{0, sizes_.tokens} : kept, kept, kept.begin == 0);
    });
  }

 private:
  float* factors() const { return reinterpret_cast<float*>(call_.scratch.data()); }
  float* dw_sums(IndexRange slice) const {
    if (blocks_.dw_bytes == 0) return (dw_ + slice.begin * sizes_.channels).floats();
    return reinterpret_cast<float*>(call_.scratch.data() + blocks_.factor_bytes);
  }
  float* dx_sums(IndexRange kept) const {
    if (blocks_.dx_bytes == 0) return (dx_ + kept.begin * sizes_.channels).floats();
    return reinterpret_cast<float*>(call_.scratch.data() + blocks_.factor_bytes + blocks_.dw_bytes);
  }
  std::span<std::byte> product_scratch() const {
    return call_.scratch.subspan(blocks_.FixedBytes());
  }

  // dx of the kept tokens, and dw if `tokens` are all tokens.
  void Sweep(IndexRange tokens, IndexRange kept, bool sums_dw) const {
    ForEachPieceOf({0, sizes_.words}, kWordsOfSlice, [&](IndexRange slice) {
      ForEachPieceOf(tokens, blocks_.tokens, [&](IndexRange block) {
        ComputeFactors(block, slice);
        if (sums_dw) AddToWeights(block, slice);
        AddToInputs(block, slice, kept);
      });
      if (sums_dw && blocks_.dw_bytes > 0) {
        StoreSums(dw_sums(slice), slice.size(), sizes_.channels,
                  dw_ + slice.begin * sizes_.channels, call_.pool);
      }
    });
    if (blocks_.dx_bytes > 0) {
      StoreSums(dx_sums(kept), kept.size(), sizes_.channels, dx_ + kept.begin * sizes_.channels,
                call_.pool);
    }
  }

  void ComputeFactors(IndexRange block, IndexRange slice) const {
    constexpr size_t kTokensOfChunk = 16;
    LogitsProduct{x_, w_, sizes_.channels}.Run(block, slice, factors(), product_scratch(),
                                               call_.pool);
    call_.pool.Run(CeilDivide(block.size(), kTokensOfChunk), [&](size_t chunk, size_t /*thread*/) {
      const size_t end = std::min(block.size(), (chunk + 1) * kTokensOfChunk);
      for (size_t i = chunk * kTokensOfChunk; i < end; ++i) {
        LogitsToFactors(block.begin + i, slice, factors() + i * slice.size());
      }
    });
  }

  void LogitsToFactors(size_t token, IndexRange slice, float* row) const {
    const int32_t target = call_.In<int32_t>(2)[token];
    if (!smoothed_.Counts(target) || !smoothed_.InRange(target)) {
      const float fill = smoothed_.Counts(target) ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
      std::fill_n(row, slice.size(), fill);
      return;
    }
    const float dloss = call_.In<float>(4)[0];
    ScaledExponentials(row, slice.size(), call_.In<float>(3)[token], dloss, row);
    const auto everywhere = static_cast<float>(smoothed_.everywhere() * dloss);
    for (size_t j = 0; j < slice.size(); ++j) row[j] -= everywhere;
    const auto word = static_cast<size_t>(target);
    if (word >= slice.begin && word < slice.end) {
      row[word - slice.begin] -= static_cast<float>(smoothed_.at_target() * dloss);
    }
  }

  // dw of the slice (S, C) += factors transposed (S, tokens) * x (tokens, C).
  void AddToWeights(IndexRange block, IndexRange slice) const {
    ForEachPieceOf(block, kTokensOfChain, [&](IndexRange chain) {
      const TransposedPacker a(factors() + (chain.begin - block.begin) * slice.size(),
                               slice.size());
      const PlainPacker b(x_ + chain.begin * sizes_.channels, sizes_.channels);
      Gemm({.shape = {slice.size(), sizes_.channels, chain.size(), false, true},
            .a = a,
            .b = b,
            .c = dw_sums(slice),
            .adds = chain.begin > 0},
           product_scratch(), call_.pool);
    });
  }

  // dx of the block's kept tokens (tokens, C) += factors (tokens, S) * w of the slice (S, C).
  void AddToInputs(IndexRange block, IndexRange slice, IndexRange kept) const {
    const IndexRange tokens{std::max(block.begin, kept.begin), std::min(block.end, kept.end)};
    if (tokens.begin >= tokens.end) return;
    const PlainPacker a(factors() + (tokens.begin - block.begin) * slice.size(), slice.size());
    const PlainPacker b(w_ + slice.begin * sizes_.channels, sizes_.channels);
    Gemm({.shape = {tokens.size(), sizes_.channels, slice.size(), false, true},
          .a = a,
          .b = b,
          .c = dx_sums(kept) + (tokens.begin - kept.begin) * sizes_.channels,
          .adds = slice.begin > 0},
         product_scratch(), call_.pool);
  }

  // Without tokens: dw is a sum of nothing.
  void ClearGradient() const {
    const GemmShape shape{sizes_.words, sizes_.channels, 0, IsShortNumber(dw_.type)};
    const PlainPacker nothing(x_, sizes_.channels);
    Gemm({shape, nothing, nothing, dw_}, {}, call_.pool);
  }

  const KernelCall& call_;
  TokenSizes sizes_;
  SmoothedTargets smoothed_;
  ConstNumbers x_;  // (N, C)
  ConstNumbers w_;  // (V, C)
  Numbers dx_;
  Numbers dw_;
  GradientBlocks blocks_;
};

}  // namespace

size_t TokenCrossEntropyGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const TokenSizes sizes(call.inputs[0], call.inputs[1]);
  const auto threads = static_cast<size_t>(limits.threads);
  return ChooseGradientBlocks(sizes, call.output_type(0), call.output_type(1), threads,
                              threads * limits.scratch_bytes_per_thread)
      .Bytes();
}

void TokenCrossEntropyGradCpu::Run(const KernelCall& call) { TokenGradientRun(call).Run(); }

}  // namespace thimble
