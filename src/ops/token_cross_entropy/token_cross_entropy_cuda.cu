// The logits of some tokens at a time, with the whole vocabulary, are in scratch: a block of
// threads takes a token's row. In backward they become factors, the loss's derivatives by them
// without dloss; those of 16-bit products have the type of x and w.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/token_cross_entropy/smoothed_targets.h"
#include "thimble/ops/token_cross_entropy/token_cross_entropy.h"
#include "thimble/ops/token_cross_entropy/token_rows.cuh"

namespace thimble {
namespace {

// SmoothedTargets as GPU code takes them.
struct TargetShares {
  int words, padding;
  float at_target, everywhere;

  explicit TargetShares(const SmoothedTargets& smoothed)
      : words(static_cast<int>(smoothed.words)),
        padding(static_cast<int>(smoothed.padding)),
        at_target(static_cast<float>(smoothed.at_target())),
        everywhere(static_cast<float>(smoothed.everywhere())) {}

  __device__ bool Counts(int32_t target) const { return padding < 0 || target != padding; }
  __device__ bool InRange(int32_t target) const { return target >= 0 && target < words; }
};

TargetShares SharesOf(const KernelCall& call) {
  return TargetShares(SmoothedTargets(call.attributes, call.in_shape(1)[0]));
}

// What each token adds to the outputs.
struct TokenTerms {
  double* losses;    // (N)
  double* nlls;      // (N)
  int32_t* correct;  // (N)

  // In scratch; logits follow.
  TokenTerms(std::byte* scratch, int64_t tokens)
      : losses(reinterpret_cast<double*>(scratch)),  // NOLINT: raw storage
        nlls(losses + tokens),
        correct(reinterpret_cast<int32_t*>(nlls + tokens)) {}  // NOLINT: raw storage
  static size_t Bytes(int64_t tokens) {
    // Logits begin at a multiple of 64 bytes.
    return (static_cast<size_t>(tokens) * (2 * sizeof(double) + sizeof(int32_t)) + 63) / 64 * 64;
  }
};

__global__ void __launch_bounds__(kLogitThreads)
    TokenLossKernel(TargetShares shares, const float* logits, const int32_t* targets, int64_t first,
                    TokenTerms terms, float* log_sums) {
  WaitForKernelsBefore();
  const int64_t token = first + blockIdx.x;
  const float* row = logits + int64_t{blockIdx.x} * shares.words;
  const RowOfLogits softmax = MeasureRow(row, shares.words);
  if (threadIdx.x != 0) return;
  log_sums[token] = softmax.best.logit + softmax.log_sum;
  const int32_t target = targets[token];
  double loss = 0;
  double nll = 0;
  bool correct = false;
  if (shares.Counts(target) && shares.InRange(target)) {
    nll = softmax.log_sum - (row[target] - softmax.best.logit);
    const double even = double{softmax.log_sum} * shares.words - softmax.distances;
    loss = shares.at_target * nll + (shares.everywhere > 0 ? shares.everywhere * even : 0.0);
    correct = softmax.best.word == target && softmax.log_sum == softmax.log_sum;
  } else if (shares.Counts(target)) {
    loss = nll = nan("");
  }
  terms.losses[token] = loss;
  terms.nlls[token] = nll;
  terms.correct[token] = correct ? 1 : 0;
}

constexpr int kTotalThreads = 1024;

// The sum of a block's numbers, in thread 0.
template <class Number>
__device__ Number TotalOfBlock(Number mine) {
  __shared__ Number of_warps[kTotalThreads / kWarpLanes];
  mine = WarpSum(mine);
  if (threadIdx.x % kWarpLanes == 0) of_warps[threadIdx.x / kWarpLanes] = mine;
  __syncthreads();
  for (int warp = 1; warp < kTotalThreads / kWarpLanes; ++warp) {
    if (threadIdx.x == 0) mine += of_warps[warp];
  }
  return mine;
}

// One block.
__global__ void __launch_bounds__(kTotalThreads)
    TokenTotalsKernel(int64_t tokens, TokenTerms terms, float* loss, float* nll, int32_t* correct) {
  WaitForKernelsBefore();
  double losses = 0;
  double nlls = 0;
  int32_t number = 0;
  for (int64_t i = threadIdx.x; i < tokens; i += kTotalThreads) {
    losses += terms.losses[i];
    nlls += terms.nlls[i];
    number += terms.correct[i];
  }
  losses = TotalOfBlock(losses);
  __syncthreads();
  nlls = TotalOfBlock(nlls);
  number = TotalOfBlock(number);
  if (threadIdx.x != 0) return;
  *loss = static_cast<float>(losses);
  *nll = static_cast<float>(nlls);
  *correct = number;
}

void RunLoss(const KernelCall& call, Math math) {
  const TokenMatrix m(call.in_shape(0), call.in_shape(1));
  const TokenTerms terms(call.scratch.data(), m.tokens);
  auto* logits =
      reinterpret_cast<float*>(call.scratch.data() + TokenTerms::Bytes(m.tokens));  // NOLINT: raw
  const int64_t at_once = m.TokensAtOnce(sizeof(float));
  for (int64_t first = 0; first < m.tokens; first += at_once) {
    const int64_t count = std::min(at_once, m.tokens - first);
    LaunchLogits(call.stream, m, math, ConstNumbersOf(call.inputs[0]),
                 ConstNumbersOf(call.inputs[1]), first, count, logits);
    TokenLossKernel<<<static_cast<unsigned>(count), kLogitThreads, 0, call.stream>>>(
        SharesOf(call), logits, call.In<int32_t>(2), first, terms, call.Out<float>(3));
    THIMBLE_CUDA_LAUNCHED();
  }
  TokenTotalsKernel<<<1, kTotalThreads, 0, call.stream>>>(m.tokens, terms, call.Out<float>(0),
                                                          call.Out<float>(1), call.Out<int32_t>(2));
  THIMBLE_CUDA_LAUNCHED();
}

// ---- Gradient

// The factors of a token; they may overwrite its logits.
template <class Factor>
__global__ void __launch_bounds__(kLogitThreads)
    TokenFactorsKernel(TargetShares shares, const float* logits, const int32_t* targets,
                       const float* log_sums, int64_t first, Factor* factors) {
  WaitForKernelsBefore();
  const int64_t token = first + blockIdx.x;
  const int64_t row = int64_t{blockIdx.x} * shares.words;
  const int32_t target = targets[token];
  if (!shares.Counts(target) || !shares.InRange(target)) {
    const float fill = shares.Counts(target) ? nanf("") : 0.0F;
    ForEachWord(0, shares.words, [&](int v) { StoreNumber(fill, factors + (row + v)); });
    return;
  }
  const float log_sum = log_sums[token];
  ForEachWord(0, shares.words, [&](int v) {
    const float share = v == target ? shares.everywhere + shares.at_target : shares.everywhere;
    StoreNumber(expf(logits[row + v] - log_sum) - share, factors + (row + v));
  });
}

// Where the parts of scratch begin, in bytes.
struct GradientScratch {
  int64_t at_once = 0;  // tokens
  size_t factors = 0;   // 0: where the logits are
  size_t dw = 0;        // sums of dw; 0: none
  size_t bytes = 0;

  GradientScratch(const TokenMatrix& m, bool short_factors, bool short_dw) {
    const size_t factor_bytes = short_factors ? 2 : 0;
    at_once = m.TokensAtOnce(static_cast<int64_t>(sizeof(float) + factor_bytes));
    const auto numbers = static_cast<size_t>(at_once * m.words);
    const auto aligned = [](size_t size) { return (size + 63) / 64 * 64; };
    bytes = aligned(numbers * sizeof(float));
    if (short_factors) {
      factors = bytes;
      bytes += aligned(numbers * factor_bytes);
    }
    if (short_dw && at_once < m.tokens) {
      dw = bytes;
      bytes += static_cast<size_t>(m.words * m.channels) * sizeof(float);
    }
    // The last word is written: nothing is aligned behind the last part.
    if (dw == 0) bytes = (factors == 0 ? 0 : factors) + numbers * (short_factors ? 2 : 4);
    bytes = (bytes + 3) / 4 * 4;
  }
};

class TokenGradientLauncher {
 public:
  TokenGradientLauncher(const KernelCall& call, Math math)
      : call_(call),
        math_(math),
        m_(call.in_shape(0), call.in_shape(1)),
        scratch_(m_, IsShort(math), IsShortNumber(call.outputs[1].dtype)) {}

  void Run() const {
    if (m_.tokens == 0) return AddToWeights(0, 0);
    for (int64_t first = 0; first < m_.tokens; first += scratch_.at_once) {
      const int64_t count = std::min(scratch_.at_once, m_.tokens - first);
      LaunchLogits(call_.stream, m_, math_, x(), w(), first, count, logits());
      ComputeFactors(first, count);
      AddToInputs(first, count);
      AddToWeights(first, count);
    }
  }

 private:
  ConstNumbers x() const { return ConstNumbersOf(call_.inputs[0]); }
  ConstNumbers w() const { return ConstNumbersOf(call_.inputs[1]); }
  const float* dloss() const { return call_.In<float>(4); }
  float* logits() const { return reinterpret_cast<float*>(call_.scratch.data()); }  // NOLINT: raw
  Numbers factors() const {
    if (!IsShort(math_)) return logits();
    return {call_.scratch.data() + scratch_.factors, x().type};
  }

  void ComputeFactors(int64_t first, int64_t count) const {
    WithStorage(factors().type, [&](auto type) {
      using Factor = decltype(type);
      TokenFactorsKernel<<<static_cast<unsigned>(count), kLogitThreads, 0, call_.stream>>>(
          SharesOf(call_), logits(), call_.In<int32_t>(2), call_.In<float>(3), first,
          static_cast<Factor*>(factors().data));
      THIMBLE_CUDA_LAUNCHED();
    });
  }
  // dx of the tokens (count, C) = dloss * factors (count, V) * w (V, C).
  void AddToInputs(int64_t first, int64_t count) const {
    const Numbers dx = NumbersOf(call_.outputs[0]) + static_cast<size_t>(first * m_.channels);
    LaunchMatrixProduct(call_.stream,
                        {.rows = count,
                         .columns = m_.channels,
                         .inner = m_.words,
                         .a = {ConstNumbers(factors().data, factors().type)},
                         .b = {w(), /*lines_across=*/true},
                         .result = dx,
                         .bias = {},
                         .other = {},
                         .factor = dloss()},
                        math_);
  }
  // dw (V, C) = dloss * the sum over all tokens of factors transposed (V, count) * x (count, C).
  void AddToWeights(int64_t first, int64_t count) const {
    const Numbers dw = NumbersOf(call_.outputs[1]);
    const Numbers sums =
        scratch_.dw == 0 ? dw : Numbers(call_.scratch.data() + scratch_.dw, DType::kF32);
    const bool last = first + count == m_.tokens;
    LaunchMatrixProduct(call_.stream,
                        {.rows = m_.words,
                         .columns = m_.channels,
                         .inner = count,
                         .a = {ConstNumbers(factors().data, factors().type), true},
                         .b = {x() + static_cast<size_t>(first * m_.channels), true},
                         .result = last ? dw : sums,
                         .bias = {},
                         .other = first == 0 ? ConstNumbers{} : ConstNumbers(sums.data, sums.type),
                         .factor = last && count > 0 ? dloss() : nullptr},
                        math_);
  }

  const KernelCall& call_;
  Math math_;
  TokenMatrix m_;
  GradientScratch scratch_;
};

// ---- Which kernels take which calls

std::string_view DeclinesTokens(const OpCall& call) {
  return FitsTokenProducts(TokenMatrix(call.inputs[0], call.inputs[1])) ? ""
                                                                        : "a size is too large";
}
std::string_view DeclinesShortTokens(const OpCall& call) {
  if (!IsShortNumber(call.input_type(0)) || call.input_type(0) != call.input_type(1)) {
    return "takes x and w of the same 16-bit type only";
  }
  return DeclinesTokens(call);
}
size_t LossScratchBytes(const OpCall& call) {
  const TokenMatrix m(call.inputs[0], call.inputs[1]);
  const auto logits = static_cast<size_t>(m.TokensAtOnce(sizeof(float)) * m.words);
  return m.tokens == 0 ? 0 : TokenTerms::Bytes(m.tokens) + logits * sizeof(float);
}
size_t GradScratchBytes(const OpCall& call, bool short_factors) {
  const TokenMatrix m(call.inputs[0], call.inputs[1]);
  if (m.tokens == 0) return 0;
  return GradientScratch(m, short_factors, IsShortNumber(call.output_type(1))).bytes;
}
Math ShortTokenMath(const KernelCall& call) {
  return call.inputs[0].dtype == DType::kF16 ? Math::kF16 : Math::kBF16;
}

}  // namespace

std::string_view TokenCrossEntropyShortCuda::Declines(const OpCall& call) {
  return DeclinesShortTokens(call);
}
size_t TokenCrossEntropyShortCuda::ScratchBytes(const OpCall& call, const KernelLimits&) {
  return LossScratchBytes(call);
}
void TokenCrossEntropyShortCuda::Run(const KernelCall& call) {
  RunLoss(call, ShortTokenMath(call));
}

std::string_view TokenCrossEntropyTf32Cuda::Declines(const OpCall& call) {
  return DeclinesTokens(call);
}
size_t TokenCrossEntropyTf32Cuda::ScratchBytes(const OpCall& call, const KernelLimits&) {
  return LossScratchBytes(call);
}
void TokenCrossEntropyTf32Cuda::Run(const KernelCall& call) { RunLoss(call, Math::kTf32); }
void TokenCrossEntropyFp32Cuda::Run(const KernelCall& call) { RunLoss(call, Math::kFp32); }

std::string_view TokenCrossEntropyGradShortCuda::Declines(const OpCall& call) {
  return DeclinesShortTokens(call);
}
size_t TokenCrossEntropyGradShortCuda::ScratchBytes(const OpCall& call, const KernelLimits&) {
  return GradScratchBytes(call, true);
}
void TokenCrossEntropyGradShortCuda::Run(const KernelCall& call) {
  TokenGradientLauncher(call, ShortTokenMath(call)).Run();
}

std::string_view TokenCrossEntropyGradTf32Cuda::Declines(const OpCall& call) {
  return DeclinesTokens(call);
}
size_t TokenCrossEntropyGradTf32Cuda::ScratchBytes(const OpCall& call, const KernelLimits&) {
  return GradScratchBytes(call, false);
}
void TokenCrossEntropyGradTf32Cuda::Run(const KernelCall& call) {
  TokenGradientLauncher(call, Math::kTf32).Run();
}
void TokenCrossEntropyGradFp32Cuda::Run(const KernelCall& call) {
  TokenGradientLauncher(call, Math::kFp32).Run();
}

}  // namespace thimble
