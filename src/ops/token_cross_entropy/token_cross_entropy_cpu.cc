#include <cmath>
#include <limits>

#include "thimble/ops/token_cross_entropy/logit_sweep.h"
#include "thimble/ops/token_cross_entropy/running_softmax.h"
#include "thimble/ops/token_cross_entropy/smoothed_targets.h"
#include "thimble/ops/token_cross_entropy/token_cross_entropy.h"

namespace thimble {
namespace {

// Of one token, over the slices so far.
struct TokenState {
  RunningSoftmax softmax;
  double sum;    // of the logits
  float target;  // the target's logit

  void AddSlice(const float* row, IndexRange slice, int32_t target_word) {
    if (slice.begin == 0) *this = {};
    softmax.AddSlice(row, slice);
    sum += SumOfRow(row, slice.size());
    const auto word = static_cast<size_t>(target_word);
    if (target_word >= 0 && word >= slice.begin && word < slice.end) {
      target = row[word - slice.begin];
    }
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
    const double largest = token.softmax.largest;
    const double log_sum = token.softmax.LogSum();
    const double own = log_sum - (static_cast<double>(token.target) - largest);
    const double mean = token.sum / static_cast<double>(smoothed.words);
    nll += own;
    loss += smoothed.at_target() * own;
    if (smoothed.smoothing > 0) loss += smoothed.smoothing * (log_sum - (mean - largest));
    correct += !std::isnan(log_sum) && token.softmax.best == target ? 1 : 0;
  }
};

}  // namespace

size_t TokenCrossEntropyCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return LogitSweep<TokenState>::Of(call, limits).ScratchBytes();
}

void TokenCrossEntropyCpu::Run(const KernelCall& call) {
  const SmoothedTargets smoothed(call.attributes, call.in_shape(1)[0]);
  const int32_t* targets = call.In<int32_t>(2);
  float* log_sums = call.Out<float>(3);
  TokenTotals totals;
  LogitSweep<TokenState>::Of(call).Run(
      call,
      [&](TokenState& state, size_t token, const float* row, IndexRange slice) {
        state.AddSlice(row, slice, targets[token]);
      },
      [&](const TokenState& state, size_t token) {
        log_sums[token] = static_cast<float>(state.softmax.LogSum() + state.softmax.largest);
        totals.Add(state, targets[token], smoothed);
      });
  call.Out<float>(0)[0] = static_cast<float>(totals.loss);
  call.Out<float>(1)[0] = static_cast<float>(totals.nll);
  call.Out<int32_t>(2)[0] = totals.correct;
}

}  // namespace thimble
