// The formula of rewire: lists of positions, sorted. Of what kernels decide by, it shares only the
// random draws. Unlike other references it allocates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "thimble/graph/reference.h"
#include "thimble/ops/rewire/rewire.h"
#include "thimble/ops/rewire/rewire_draw.h"
#include "thimble/tensor/packed.h"

namespace thimble {

class RewireFormula {
 public:
  struct Settings {
    bool is_set = false;  // the method SET, otherwise DSR
    double fraction = 0;
    int64_t quota = 0;
    double threshold = 0;
    RewireDraw draw;
  };
  struct Weight {
    int64_t position = 0;  // in the pattern
    size_t place = 0;      // in the pool
    double magnitude = 0;
  };
  struct Tensor {
    int64_t begin = 0;  // its first position
    int64_t elements = 0;
    std::vector<Weight> active = {};  // first those to keep: the largest, then the lowest positions
    std::vector<int64_t> inactive = {};
    int64_t kept = 0;
    int64_t grown = 0;
    int64_t room() const { return static_cast<int64_t>(inactive.size()) - grown; }
    int64_t num_active() const { return static_cast<int64_t>(active.size()); }
  };
  // A weight of the next pattern: a position and its place in the old pool, or kGrown.
  struct NextWeight {
    int64_t position = 0;
    size_t place = 0;
  };
  static constexpr size_t kGrown = SIZE_MAX;

  explicit RewireFormula(const Settings& settings) : settings_(settings) {}

  // `magnitudes` are those of the pool, with infinity for NaN.
  void Add(const int32_t* pattern, int64_t begin, int64_t elements,
           const std::vector<double>& magnitudes) {
    Tensor tensor{begin, elements};
    for (int64_t position = begin; position < begin + elements; ++position) {
      const auto word = static_cast<uint32_t>(pattern[position / kPatternWordBits]);
      if ((word >> (position % kPatternWordBits) & 1) == 0) {
        tensor.inactive.push_back(position);
      } else {
        tensor.active.push_back({position, num_active_, magnitudes[num_active_]});
        ++num_active_;
      }
    }
    std::stable_sort(tensor.active.begin(), tensor.active.end(), IsKeptBefore);
    tensors_.push_back(std::move(tensor));
  }

  // The weights of the next pattern, in the order of positions.
  std::vector<NextWeight> Run() {
    settings_.is_set ? CountSet() : CountDsr();
    std::vector<NextWeight> next;
    for (const Tensor& tensor : tensors_) {
      for (int64_t i = 0; i < tensor.kept; ++i) {
        const Weight& weight = tensor.active[static_cast<size_t>(i)];
        next.push_back({weight.position, weight.place});
      }
      for (const int64_t position : ToGrow(tensor)) next.push_back({position, kGrown});
    }
    std::sort(next.begin(), next.end(),
              [](const auto& a, const auto& b) { return a.position < b.position; });
    return next;
  }

  int64_t moved() const {
    int64_t moved = 0;
    for (const Tensor& tensor : tensors_) moved += tensor.grown;
    return moved;
  }
  // 0.5, 1 or 2: what the threshold is multiplied by.
  double threshold_factor() const { return threshold_factor_; }

 private:
  static bool IsKeptBefore(const Weight& a, const Weight& b) { return a.magnitude > b.magnitude; }

  // The positions with the smallest keys.
  std::vector<int64_t> ToGrow(const Tensor& tensor) const {
    std::vector<std::pair<uint32_t, int64_t>> keys;
    for (const int64_t position : tensor.inactive) {
      keys.emplace_back(settings_.draw.KeyOf(position), position);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < tensor.grown; ++i) {
      positions.push_back(keys[static_cast<size_t>(i)].second);
    }
    return positions;
  }

  void CountSet() {
    for (Tensor& tensor : tensors_) {
      const double wanted = settings_.fraction * static_cast<double>(tensor.active.size());
      tensor.grown = std::min(
          {static_cast<int64_t>(std::floor(wanted + 0.5)), tensor.num_active() - 1, tensor.room()});
      tensor.kept = tensor.num_active() - tensor.grown;
    }
  }

  void CountDsr() {
    int64_t dropped = 0;
    int64_t room = 0;
    for (Tensor& tensor : tensors_) {
      const auto below = [&](const Weight& w) { return w.magnitude < settings_.threshold; };
      const auto count = std::count_if(tensor.active.begin(), tensor.active.end(), below);
      tensor.kept = std::max<int64_t>(1, tensor.num_active() - count);
      dropped += tensor.num_active() - tensor.kept;
      room += tensor.room();
    }
    if (10 * dropped > 11 * settings_.quota) threshold_factor_ = 0.5;
    if (10 * dropped < 9 * settings_.quota) threshold_factor_ = 2;
    for (; dropped > room; --dropped) ++LargestDropped().kept;
    ShareOut(dropped);
  }

  // The tensor with the largest weight among those to be dropped.
  Tensor& LargestDropped() {
    Tensor* largest = nullptr;
    const auto next = [](const Tensor& t) { return t.active[static_cast<size_t>(t.kept)]; };
    for (Tensor& tensor : tensors_) {
      if (tensor.kept == tensor.num_active()) continue;
      if (largest == nullptr || IsKeptBefore(next(tensor), next(*largest))) largest = &tensor;
    }
    return *largest;
  }

  void ShareOut(int64_t left) {
    for (uint32_t round = 0; left > 0; ++round) {
      std::vector<Tensor*> open;
      for (Tensor& tensor : tensors_) {
        if (tensor.room() > 0) open.push_back(&tensor);
      }
      const std::vector<int64_t> shares = Shares(open, left, round);
      for (size_t i = 0; i < open.size(); ++i) {
        const int64_t taken = std::min(shares[i], open[i]->room());
        open[i]->grown += taken;
        left -= taken;
      }
    }
  }

  std::vector<int64_t> Shares(const std::vector<Tensor*>& open, int64_t left, uint32_t round) {
    int64_t kept = 0;
    for (const Tensor* tensor : open) kept += tensor->kept;
    std::vector<int64_t> shares;
    for (const Tensor* tensor : open) shares.push_back(Rounded(tensor->kept * left, kept));
    const int64_t rest = left - std::accumulate(shares.begin(), shares.end(), int64_t{0});
    auto chosen =
        static_cast<size_t>(settings_.draw.ChooseTensor(round, static_cast<int64_t>(open.size())));
    if (rest > 0) shares[chosen] += rest;
    for (int64_t taken = 0; taken < -rest; ++taken) {
      while (shares[chosen] == 0) chosen = (chosen + 1) % open.size();
      --shares[chosen];
    }
    return shares;
  }

  // To the nearest integer, halves up.
  static int64_t Rounded(int64_t numerator, int64_t denominator) {
    return numerator / denominator + (numerator % denominator * 2 >= denominator ? 1 : 0);
  }

  Settings settings_;
  std::vector<Tensor> tensors_;
  size_t num_active_ = 0;
  double threshold_factor_ = 1;
};

struct RewireReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    const RewirePorts ports = RewirePortsOf(call.op.inputs.size());
    const T before = call.In(ports.threshold())[0];
    const T threshold = Clamped(before);
    RewireFormula formula = Formula(call, RealPart(threshold));
    const std::vector<RewireFormula::NextWeight> next = formula.Run();
    WritePattern(call, next);
    for (size_t pool = 1; pool <= ports.pools; ++pool) MovePool(call, pool, next);
    call.Out(ports.threshold())[0] = Clamped(threshold * T(formula.threshold_factor()));
    call.template OutAs<int32_t>(ports.moved())[0] = static_cast<int32_t>(formula.moved());
  }

 private:
  template <class T>
  static T Clamped(T threshold) {
    if (!(RealPart(threshold) > double{1e-30F})) return T(1e-30F);
    return RealPart(threshold) < double{1e30F} ? threshold : T(1e30F);
  }

  template <class T>
  static RewireFormula Formula(const ReferenceCall<T>& call, double threshold) {
    const RewirePorts ports = RewirePortsOf(call.op.inputs.size());
    const Attributes& attributes = call.op.attributes;
    RewireFormula formula({.is_set = attributes.Int("method") != 0,
                           .fraction = attributes.Float("fraction"),
                           .quota = attributes.Int("quota"),
                           .threshold = threshold,
                           .draw = MakeRewireDraw(attributes.Int("seed"),
                                                  call.template InAs<int32_t>(ports.update())[0])});
    std::vector<double> magnitudes;
    for (int64_t i = 0; i < call.in_shape(1).elements(); ++i) {
      const double magnitude = std::abs(RealPart(call.In(1)[i]));
      magnitudes.push_back(std::isnan(magnitude) ? HUGE_VAL : magnitude);
    }
    int64_t begin = 0;
    for (const int64_t elements : attributes.Ints("tensors")) {
      formula.Add(call.template InAs<int32_t>(0), begin, elements, magnitudes);
      begin += PatternBlocks(elements) * kPatternBlock;
    }
    return formula;
  }

  template <class T>
  static void WritePattern(const ReferenceCall<T>& call,
                           const std::vector<RewireFormula::NextWeight>& next) {
    auto* words = call.template OutAs<uint32_t>(0);
    const int64_t blocks = call.out_shape(0).elements() / (kPatternBlockWords + 1);
    std::fill_n(words, PatternWords(blocks), 0U);
    uint32_t* starts = words + blocks * kPatternBlockWords;
    for (const auto& [position, place] : next) {
      words[position / kPatternWordBits] |= 1U << (position % kPatternWordBits);
      ++starts[position / kPatternBlock + 1];
    }
    std::partial_sum(starts, starts + blocks + 1, starts);
  }

  // Numbers behind the active ones, which a pool in 8 bits has, become 0.
  template <class T>
  static void MovePool(const ReferenceCall<T>& call, size_t pool,
                       const std::vector<RewireFormula::NextWeight>& next) {
    const auto count = static_cast<size_t>(call.in_shape(pool).elements());
    const std::vector<T> before(call.In(pool), call.In(pool) + count);
    std::fill_n(call.Out(pool), count, T(0));
    for (size_t i = 0; i < next.size(); ++i) {
      if (next[i].place != RewireFormula::kGrown) call.Out(pool)[i] = before[next[i].place];
    }
  }
};

}  // namespace thimble
