// Two passes over a parameter: the sums of the squares of its gradients, then its elements. Sums of
// columns are made for groups of rows, which depend on the shape alone, and added in order.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/adam_update/adam_factored.h"
#include "thimble/ops/update_rounding.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/adam_update/adam_factored_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"
#include "thimble/ops/adam_update/adam_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Adds the squares of factor * gradient to `sums`, and returns their total.
float AddSquares(const float* gradient, size_t count, float factor, float* sums) {
  const WideTag wide;
  const size_t lanes = hn::Lanes(wide);
  auto totals = hn::Zero(wide);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto scaled = hn::Mul(hn::Set(wide, factor), hn::LoadU(wide, gradient + i));
    const auto square = hn::Mul(scaled, scaled);
    hn::StoreU(hn::Add(square, hn::LoadU(wide, sums + i)), wide, sums + i);
    totals = hn::Add(totals, square);
  }
  float total = hn::GetLane(hn::SumOfLanes(wide, totals));
  for (; i < count; ++i) {
    const float scaled = factor * gradient[i];
    sums[i] += scaled * scaled;
    total += scaled * scaled;
  }
  return total;
}

// to[i] = factor * from[i].
void ScaleRoots(const float* from, size_t count, float factor, float* to) {
  ForEachVector(count, [&](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::Set(tag, factor), hn::LoadU(tag, from + i)), tag, to + i);
  });
}

void FactoredGather(const AdamFactors& factors, bool first, float gradient_factor,
                    const NumberPiece& piece) {
  const double kept = first ? factors.beta1 : 1;
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    auto gradient = hn::Zero(tag);
    if (gradient_factor != 0) {
      gradient = hn::Mul(hn::Set(tag, gradient_factor), hn::LoadU(tag, piece.in[0] + i));
    }
    const auto moment = hn::LoadU(tag, piece.in[1] + i);
    hn::StoreU(NextMoment(tag, kept, factors, moment, gradient), tag, piece.out[0] + i);
  });
}

// `roots` of the piece's elements.
void FactoredApply(const AdamFactors& factors, const float* roots, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto moment = hn::LoadU(tag, piece.in[1] + i);
    hn::StoreU(NextWeight(tag, factors, weight, moment, hn::LoadU(tag, roots + i)), tag,
               piece.out[0] + i);
  });
}

void FactoredUpdate(const AdamFactors& factors, float gradient_factor, const float* roots,
                    const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto gradient = hn::Mul(hn::Set(tag, gradient_factor), hn::LoadU(tag, piece.in[1] + i));
    const auto moment =
        NextMoment(tag, factors.beta1, factors, hn::LoadU(tag, piece.in[2] + i), gradient);
    hn::StoreU(NextWeight(tag, factors, weight, moment, hn::LoadU(tag, roots + i)), tag,
               piece.out[0] + i);
    hn::StoreU(moment, tag, piece.out[1] + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(AddSquares);
HWY_EXPORT(ScaleRoots);
HWY_EXPORT(FactoredGather);
HWY_EXPORT(FactoredApply);
HWY_EXPORT(FactoredUpdate);

namespace {

size_t Size(int64_t size) { return static_cast<size_t>(size); }

// Groups of rows, whose squares are summed by column.
int64_t RowGroups(const AdamMatrix& matrix) {
  constexpr int64_t kMostGroups = 16;
  return std::min(matrix.rows, kMostGroups);
}
size_t GroupSumFloats(const AdamMatrix& matrix) { return Size(RowGroups(matrix) * matrix.columns); }
size_t RootFloats(const AdamMatrix& matrix) { return Size(matrix.rows + matrix.columns); }

// What the kernels of the three ops have in common.
class FactoredRun {
 public:
  FactoredRun(const KernelCall& call, const AdamFactoredInputs& where)
      : call_(call),
        where_(where),
        matrix_(call.in_shape(0)),
        factors_(Unbounded(AdamFactorsOf(call, where.inputs))),
        gradient_factor_(GradientFactorOf(call, where.inputs)),
        seen_(where.inputs.seen == kNoAdamInput ? 0 : call.In<int32_t>(where.inputs.seen)[0]) {}

  const AdamFactors& factors() const { return factors_; }
  float gradient_factor() const { return gradient_factor_; }
  bool first() const { return seen_ == 0; }

  // The next means, at outputs `next` and the one after it, from the squares of input `gradient`.
  void AddMeans(size_t gradient, size_t next) const {
    auto* group_sums = reinterpret_cast<float*>(call_.scratch.data());  // NOLINT: raw storage
    const int64_t groups = RowGroups(matrix_);
    call_.pool.Run(Size(groups), [&](size_t group, size_t /*thread*/) {
      float* sums = group_sums + group * Size(matrix_.columns);
      std::fill_n(sums, matrix_.columns, 0.0F);
      const auto index = static_cast<int64_t>(group);
      for (int64_t row = index * matrix_.rows / groups; row < (index + 1) * matrix_.rows / groups;
           ++row) {
        const float mean = AddRow(gradient, row, sums) / static_cast<float>(matrix_.columns);
        call_.Out<float>(next)[row] = NextMean(call_.In<float>(where_.rows)[row], mean);
      }
    });
    for (int64_t column = 0; column < matrix_.columns; ++column) {
      float sum = 0;
      for (int64_t group = 0; group < groups; ++group) {
        sum += group_sums[group * matrix_.columns + column];
      }
      const float mean = sum / static_cast<float>(matrix_.rows);
      call_.Out<float>(next + 1)[column] = NextMean(call_.In<float>(where_.columns)[column], mean);
    }
  }

  // Roots of the factors of the second moment, at a place in scratch.
  void SetRoots(const float* rows, const float* columns, size_t first_float) {
    auto* floats = reinterpret_cast<float*>(call_.scratch.data()) + first_float;  // NOLINT: raw
    row_roots_ = floats;
    column_roots_ = floats + matrix_.rows;
    double sum = 0;
    for (int64_t i = 0; i < matrix_.rows; ++i) {
      sum += double{rows[i]};
      row_roots_[i] = std::sqrt(rows[i]);
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(matrix_.rows));
    for (int64_t i = 0; i < matrix_.columns; ++i) {
      column_roots_[i] = mean == 0 ? 0.0F : std::sqrt(columns[i] / mean);
    }
  }

  // Calls body for pieces of the arrays with the roots of their elements, and rounds the results.
  template <class Body>
  void ForEachPiece(size_t arrays_out, const Body& body) const {
    NumberRounding rounding;
    RoundingDraw draw = DrawOf(call_.attributes);
    if (RoundsAtRandom(call_.attributes)) {
      draw.update = static_cast<uint32_t>(call_.In<int32_t>(where_.inputs.update)[0]);
      const bool is_part = where_.inputs.seen != kNoAdamInput;
      draw.occasion = is_part ? static_cast<uint32_t>(seen_) + 1 : 0;
      rounding.draw = &draw;
    }
    ParallelNumbers(call_.pool, call_.inputs.first(where_.inputs.arrays),
                    call_.outputs.first(arrays_out), rounding,
                    [&](const NumberPiece& piece) { ForEachPart(piece, body); });
  }

  // An update that is skipped: output `next` and those after it are the old values, of the input
  // `moment` and those after it. The scratch counts as used.
  void CopyState(size_t moment, size_t next) const {
    for (size_t i = 0; i < 3; ++i) Copy(moment + i, next + i);
    if (!call_.scratch.empty()) std::memset(&call_.scratch.back() - 3, 0, 4);
  }
  void Copy(size_t input, size_t output) const {
    CopyNumbers(call_.pool, call_.inputs[input], call_.outputs[output]);
  }

 private:
  float NextMean(float old, float mean) const {
    const double kept = first() ? factors_.beta2 : 1;
    return std::fma(static_cast<float>(kept), old, static_cast<float>(factors_.new_share2) * mean);
  }

  // Adds the squares of a row to `sums`, and returns their total.
  float AddRow(size_t gradient, int64_t row, float* sums) const {
    if (gradient_factor_ == 0) return 0;
    alignas(64) float copy[kNumbersPerPiece];
    const ConstNumbers numbers =
        ConstNumbersOf(call_.inputs[gradient]) + Size(row * matrix_.columns);
    float total = 0;
    for (size_t begin = 0; begin < Size(matrix_.columns); begin += kNumbersPerPiece) {
      const size_t count = std::min(kNumbersPerPiece, Size(matrix_.columns) - begin);
      const float* piece = ReadNumbers(numbers + begin, count, copy);
      total += HWY_DYNAMIC_DISPATCH(AddSquares)(piece, count, gradient_factor_, sums + begin);
    }
    return total;
  }

  // In parts for whose roots there is space.
  template <class Body>
  void ForEachPart(const NumberPiece& piece, const Body& body) const {
    alignas(64) float roots[kNumbersPerPiece];
    for (size_t begin = 0; begin < piece.count; begin += kNumbersPerPiece) {
      NumberPiece part = piece;
      part.begin += begin;
      part.count = std::min(kNumbersPerPiece, piece.count - begin);
      for (const float*& in : part.in) in += in == nullptr ? 0 : begin;
      for (float*& out : part.out) out += out == nullptr ? 0 : begin;
      if (row_roots_ != nullptr) FillRoots(part, roots);
      body(part, roots);
    }
  }

  void FillRoots(const NumberPiece& part, float* roots) const {
    const size_t columns = Size(matrix_.columns);
    for (size_t done = 0; done < part.count;) {
      const size_t column = (part.begin + done) % columns;
      const size_t count = std::min(part.count - done, columns - column);
      HWY_DYNAMIC_DISPATCH(ScaleRoots)
      (column_roots_ + column, count, row_roots_[(part.begin + done) / columns], roots + done);
      done += count;
    }
  }

  const KernelCall& call_;
  const AdamFactoredInputs& where_;
  AdamMatrix matrix_;
  AdamFactors factors_;
  float gradient_factor_;
  int32_t seen_;
  float* row_roots_ = nullptr;  // null: roots are not needed
  float* column_roots_ = nullptr;
};

}  // namespace

size_t AdamFactoredUpdateCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const AdamMatrix matrix(call.inputs[0]);
  return (GroupSumFloats(matrix) + RootFloats(matrix)) * sizeof(float);
}
void AdamFactoredUpdateCpu::Run(const KernelCall& call) {
  FactoredRun run(call, kFactoredUpdateInputs);
  if (call.in_shape(0).elements() == 0 || run.gradient_factor() == 0) {
    run.Copy(0, 0);
    return run.CopyState(2, 1);
  }
  run.AddMeans(1, 2);
  run.SetRoots(call.Out<float>(2), call.Out<float>(3),
               GroupSumFloats(AdamMatrix(call.in_shape(0))));
  run.ForEachPiece(2, [&](const NumberPiece& piece, const float* roots) {
    HWY_DYNAMIC_DISPATCH(FactoredUpdate)(run.factors(), run.gradient_factor(), roots, piece);
  });
}

size_t AdamFactoredGatherCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GroupSumFloats(AdamMatrix(call.inputs[0])) * sizeof(float);
}
void AdamFactoredGatherCpu::Run(const KernelCall& call) {
  const FactoredRun run(call, kFactoredGatherInputs);
  const bool stays = run.gradient_factor() == 0 && !run.first();
  if (call.in_shape(0).elements() == 0 || stays) return run.CopyState(1, 0);
  run.AddMeans(0, 1);
  run.ForEachPiece(1, [&](const NumberPiece& piece, const float* /*roots*/) {
    HWY_DYNAMIC_DISPATCH(FactoredGather)
    (run.factors(), run.first(), run.gradient_factor(), piece);
  });
}

size_t AdamFactoredApplyCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return RootFloats(AdamMatrix(call.inputs[0])) * sizeof(float);
}
void AdamFactoredApplyCpu::Run(const KernelCall& call) {
  if (call.in_shape(0).elements() == 0) return;
  FactoredRun run(call, kFactoredApplyInputs);
  run.SetRoots(call.In<float>(2), call.In<float>(3), 0);
  run.ForEachPiece(1, [&](const NumberPiece& piece, const float* roots) {
    HWY_DYNAMIC_DISPATCH(FactoredApply)(run.factors(), roots, piece);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
