// The formulas of token_cross_entropy and its gradient.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/token_cross_entropy/smoothed_targets.h"

namespace thimble {

// The logits of one token: its row of x (N, C) times w (V, C) transposed.
template <class T>
std::vector<T> LogitsOfToken(const T* x, const T* w, int64_t words, int64_t channels) {
  std::vector<T> logits(static_cast<size_t>(words), T(0));
  for (int64_t v = 0; v < words; ++v) {
    for (int64_t c = 0; c < channels; ++c) {
      logits[static_cast<size_t>(v)] += x[c] * w[v * channels + c];
    }
  }
  return logits;
}

// The first largest logit, and the log of the sum of all exponentials relative to it.
template <class T>
struct TokenSoftmax {
  explicit TokenSoftmax(const std::vector<T>& logits) : log_sum(0) {
    using std::exp;
    using std::log;
    for (size_t v = 1; v < logits.size(); ++v) {
      if (RealPart(logits[v]) > RealPart(logits[best])) best = v;
    }
    // Treated as a constant in the derivative, because its effect cancels.
    largest = T(RealPart(logits[best]));
    for (const T& logit : logits) log_sum += exp(logit - largest);
    log_sum = log(log_sum);
  }

  size_t best = 0;
  T largest;
  T log_sum;
};

struct TokenCrossEntropyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t tokens = call.in_shape(2).elements();
    const int64_t channels = call.in_shape(1)[1];
    const SmoothedTargets smoothed(call.op.attributes, call.in_shape(1)[0]);
    T loss(0);
    T nll(0);
    int32_t correct = 0;
    for (int64_t i = 0; i < tokens; ++i) {
      const auto logits =
          LogitsOfToken(call.In(0) + i * channels, call.In(1), smoothed.words, channels);
      const TokenSoftmax<T> softmax(logits);
      call.Out(3)[i] = softmax.largest + softmax.log_sum;
      const int32_t target = call.template InAs<int32_t>(2)[i];
      if (!smoothed.Counts(target)) continue;
      if (!smoothed.InRange(target)) {
        loss += T(std::numeric_limits<double>::quiet_NaN());
        nll += T(std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const auto minus_log = [&](const T& logit) {
        return softmax.log_sum - (logit - softmax.largest);
      };
      const T own = minus_log(logits[static_cast<size_t>(target)]);
      nll += own;
      loss += T(smoothed.at_target()) * own;
      for (const T& logit : logits) loss += T(smoothed.everywhere()) * minus_log(logit);
      const bool known = !std::isnan(RealPart(softmax.log_sum));
      correct += known && softmax.best == static_cast<size_t>(target) ? 1 : 0;
    }
    call.Out(0)[0] = loss;
    call.Out(1)[0] = nll;
    call.template OutAs<int32_t>(2)[0] = correct;
  }
};

struct TokenCrossEntropyGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const int64_t tokens = call.in_shape(2).elements();
    const int64_t channels = call.in_shape(1)[1];
    const int64_t words = call.in_shape(1)[0];
    for (int64_t k = 0; k < call.out_shape(0).elements(); ++k) call.Out(0)[k] = T(0);
    for (int64_t k = 0; k < call.out_shape(1).elements(); ++k) call.Out(1)[k] = T(0);
    for (int64_t i = 0; i < tokens; ++i) {
      const T* x = call.In(0) + i * channels;
      const auto factors = Factors(call, LogitsOfToken(x, call.In(1), words, channels), i);
      for (int64_t v = 0; v < words; ++v) {
        for (int64_t c = 0; c < channels; ++c) {
          call.Out(0)[i * channels + c] +=
              factors[static_cast<size_t>(v)] * call.In(1)[v * channels + c];
          call.Out(1)[v * channels + c] += factors[static_cast<size_t>(v)] * x[c];
        }
      }
    }
  }

 private:
  // The derivatives by the logits of token i.
  template <class T>
  static std::vector<T> Factors(const ReferenceCall<T>& call, std::vector<T> logits, int64_t i) {
    using std::exp;
    const SmoothedTargets smoothed(call.op.attributes, call.in_shape(1)[0]);
    const int32_t target = call.template InAs<int32_t>(2)[i];
    if (!smoothed.Counts(target)) return std::vector<T>(logits.size(), T(0));
    if (!smoothed.InRange(target)) {
      return std::vector<T>(logits.size(), T(std::numeric_limits<double>::quiet_NaN()));
    }
    for (T& logit : logits) {
      logit = (exp(logit - call.In(3)[i]) - T(smoothed.everywhere())) * call.In(4)[0];
    }
    logits[static_cast<size_t>(target)] -= T(smoothed.at_target()) * call.In(4)[0];
    return logits;
  }
};

}  // namespace thimble
