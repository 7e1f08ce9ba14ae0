// The group-norm ops as formulas.
#pragma once

#include <algorithm>
#include <cmath>

#include "thimble/ops/batch_norm/reference.h"
#include "thimble/ops/group_norm/group_sizes.h"

namespace thimble {

// y of a group from the first three inputs and its statistics.
template <class T>
void NormalizeGroup(const ReferenceCall<T>& call, const GroupSizes& sizes, int64_t sample,
                    int64_t group, T mean, T variance) {
  using std::sqrt;
  const T deviation = sqrt(variance + T(call.op.attributes.Float("epsilon")));
  sizes.ForEachElement(sample, group, [&](int64_t i, int64_t c) {
    const T normalized = (call.In(0)[i] - mean) * (call.In(1)[c] / deviation) + call.In(2)[c];
    call.Out(0)[i] = BehindRelu(call.op.attributes, normalized, normalized);
  });
}

struct GroupNormReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const GroupSizes sizes(call.in_shape(0), call.op.attributes.Int("groups"));
    const T* x = call.In(0);
    sizes.ForEachGroup([&](int64_t sample, int64_t group, int64_t place) {
      T sum = T(0);
      sizes.ForEachElement(sample, group, [&](int64_t i, int64_t) { sum += x[i]; });
      const T mean = sum / T(sizes.count());
      T squares = T(0);
      sizes.ForEachElement(sample, group,
                           [&](int64_t i, int64_t) { squares += (x[i] - mean) * (x[i] - mean); });
      const T variance = squares / T(sizes.count());
      NormalizeGroup(call, sizes, sample, group, mean, variance);
      call.Out(1)[place] = mean;
      call.Out(2)[place] = variance;
    });
  }
};

struct GroupNormApplyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const GroupSizes sizes(call.in_shape(0), call.op.attributes.Int("groups"));
    sizes.ForEachGroup([&](int64_t sample, int64_t group, int64_t place) {
      NormalizeGroup(call, sizes, sample, group, call.In(3)[place], call.In(4)[place]);
    });
  }
};

struct GroupNormGradReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    RunWith(call, [](int64_t, T dx) { return dx; });
  }

  // `finish` gets the index and the gradient of each x and returns what is stored.
  template <class T, class Finish>
  static void RunWith(const ReferenceCall<T>& call, const Finish& finish) {
    const GroupSizes sizes(call.in_shape(0), call.op.attributes.Int("groups"));
    std::fill_n(call.Out(1), sizes.channels, T(0));
    std::fill_n(call.Out(2), sizes.channels, T(0));
    sizes.ForEachGroup([&](int64_t sample, int64_t group, int64_t place) {
      RunGroup(call, sizes, sample, group, place, finish);
    });
  }

 private:
  template <class T, class Finish>
  static void RunGroup(const ReferenceCall<T>& call, const GroupSizes& sizes, int64_t sample,
                       int64_t group, int64_t place, const Finish& finish) {
    using std::sqrt;
    const T* gamma = call.In(1);
    const T mean = call.In(3)[place];
    const T deviation = sqrt(call.In(4)[place] + T(call.op.attributes.Float("epsilon")));
    const auto centred = [&](int64_t i) { return call.In(0)[i] - mean; };
    const auto gradient = [&](int64_t i, int64_t c) {
      return BehindRelu(call.op.attributes, centred(i) * (gamma[c] / deviation) + call.In(2)[c],
                        call.In(5)[i]);
    };
    T sum = T(0);
    T product = T(0);
    sizes.ForEachElement(sample, group, [&](int64_t i, int64_t c) {
      const T dy = gradient(i, c);
      call.Out(1)[c] += dy * centred(i) / deviation;
      call.Out(2)[c] += dy;
      sum += gamma[c] * dy;
      product += gamma[c] * dy * centred(i) / deviation;
    });
    const T count = T(sizes.count());
    sizes.ForEachElement(sample, group, [&](int64_t i, int64_t c) {
      const T normalized = centred(i) / deviation;
      const T direct = gamma[c] * gradient(i, c);
      call.Out(0)[i] = finish(i, (direct - sum / count - normalized * product / count) / deviation);
    });
  }
};

struct GroupNormGradAddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const T* other = call.In(6);
    GroupNormGradReference::RunWith(call, [&](int64_t i, T dx) { return other[i] + dx; });
  }
};

}  // namespace thimble
