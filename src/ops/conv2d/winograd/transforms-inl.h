// The one-dimensional transforms of F(4, 3), on vectors of channels. Two-dimensional ones apply
// them to columns, then to rows.
//
// Four outputs y of a filter g of three taps over six inputs d are the low coefficients of a
// product of polynomials, found from its values at six points: y = A' [(G g) * (B' d)], where '
// means transposed. The points are 0, ±3/4, ±3/2 and infinity: all constants of B and A are then
// short binary fractions, and rounding errors are about half of those with the usual 0, ±1, ±2,
// infinity.

// Highway's include guard: the file is included again for every target.
#if defined(THIMBLE_OPS_CONV2D_WINOGRAD_TRANSFORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_OPS_CONV2D_WINOGRAD_TRANSFORMS_INL_H_
#undef THIMBLE_OPS_CONV2D_WINOGRAD_TRANSFORMS_INL_H_
#else
#define THIMBLE_OPS_CONV2D_WINOGRAD_TRANSFORMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The points ±a and ±b.
constexpr float kA = 0.75F;
constexpr float kB = 1.5F;
constexpr float kA2 = kA * kA;
constexpr float kB2 = kB * kB;
// Divisors of the values at 0, ±a and ±b: the products of the distances to the other points.
constexpr double kAtZero = 1.0 / (double{kA2} * double{kB2});
constexpr double kAtA = 1.0 / (2 * double{kA2} * (double{kA2} - double{kB2}));
constexpr double kAtB = 1.0 / (2 * double{kB2} * (double{kB2} - double{kA2}));

// Each: `in` and `out` are lines of vectors, kIn and kOut long.

// B': six inputs to six values.
struct InputLine {
  static constexpr size_t kIn = 6;
  static constexpr size_t kOut = 6;
  template <class Tag, class V = hn::Vec<Tag>>
  static HWY_INLINE void Apply(Tag tag, const V (&in)[kIn], V (&out)[kOut]) {
    const V a = hn::Set(tag, kA);
    const V b = hn::Set(tag, kB);
    const V a2 = hn::Set(tag, kA2);
    const V b2 = hn::Set(tag, kB2);
    const V product = hn::Set(tag, kA2 * kB2);
    const V sum = hn::Set(tag, kA2 + kB2);
    const V even_a = hn::NegMulAdd(b2, in[2], in[4]);
    const V odd_a = hn::NegMulAdd(b2, in[1], in[3]);
    const V even_b = hn::NegMulAdd(a2, in[2], in[4]);
    const V odd_b = hn::NegMulAdd(a2, in[1], in[3]);
    out[0] = hn::MulAdd(product, in[0], hn::NegMulAdd(sum, in[2], in[4]));
    out[1] = hn::MulAdd(a, odd_a, even_a);
    out[2] = hn::NegMulAdd(a, odd_a, even_a);
    out[3] = hn::MulAdd(b, odd_b, even_b);
    out[4] = hn::NegMulAdd(b, odd_b, even_b);
    out[5] = hn::MulAdd(product, in[1], hn::NegMulAdd(sum, in[3], in[5]));
  }
};

// A': six products to four outputs.
struct OutputLine {
  static constexpr size_t kIn = 6;
  static constexpr size_t kOut = 4;
  template <class Tag, class V = hn::Vec<Tag>>
  static HWY_INLINE void Apply(Tag tag, const V (&in)[kIn], V (&out)[kOut]) {
    const V sum_a = hn::Add(in[1], in[2]);
    const V difference_a = hn::Sub(in[1], in[2]);
    const V sum_b = hn::Add(in[3], in[4]);
    const V difference_b = hn::Sub(in[3], in[4]);
    out[0] = hn::Add(in[0], hn::Add(sum_a, sum_b));
    out[1] = hn::MulAdd(hn::Set(tag, kA), difference_a, hn::Mul(hn::Set(tag, kB), difference_b));
    out[2] = hn::MulAdd(hn::Set(tag, kA2), sum_a, hn::Mul(hn::Set(tag, kB2), sum_b));
    out[3] = hn::MulAdd(hn::Set(tag, kA * kA2), difference_a,
                        hn::MulAdd(hn::Set(tag, kB * kB2), difference_b, in[5]));
  }
};

// A: four output gradients to six values.
struct OutputGradientLine {
  static constexpr size_t kIn = 4;
  static constexpr size_t kOut = 6;
  template <class Tag, class V = hn::Vec<Tag>>
  static HWY_INLINE void Apply(Tag tag, const V (&in)[kIn], V (&out)[kOut]) {
    const V a2 = hn::Set(tag, kA2);
    const V b2 = hn::Set(tag, kB2);
    const V even_a = hn::MulAdd(a2, in[2], in[0]);
    const V odd_a = hn::MulAdd(a2, in[3], in[1]);
    const V even_b = hn::MulAdd(b2, in[2], in[0]);
    const V odd_b = hn::MulAdd(b2, in[3], in[1]);
    out[0] = in[0];
    out[1] = hn::MulAdd(hn::Set(tag, kA), odd_a, even_a);
    out[2] = hn::NegMulAdd(hn::Set(tag, kA), odd_a, even_a);
    out[3] = hn::MulAdd(hn::Set(tag, kB), odd_b, even_b);
    out[4] = hn::NegMulAdd(hn::Set(tag, kB), odd_b, even_b);
    out[5] = in[3];
  }
};

// G: three taps to six values.
struct WeightLine {
  static constexpr size_t kIn = 3;
  static constexpr size_t kOut = 6;
  template <class Tag, class V = hn::Vec<Tag>>
  static HWY_INLINE void Apply(Tag tag, const V (&in)[kIn], V (&out)[kOut]) {
    const auto constant = [=](double value)
                              HWY_ATTR { return hn::Set(tag, static_cast<float>(value)); };
    const V even_a = hn::MulAdd(constant(kA2 * kAtA), in[2], hn::Mul(constant(kAtA), in[0]));
    const V even_b = hn::MulAdd(constant(kB2 * kAtB), in[2], hn::Mul(constant(kAtB), in[0]));
    out[0] = hn::Mul(constant(kAtZero), in[0]);
    out[1] = hn::MulAdd(constant(kA * kAtA), in[1], even_a);
    out[2] = hn::NegMulAdd(constant(kA * kAtA), in[1], even_a);
    out[3] = hn::MulAdd(constant(kB * kAtB), in[1], even_b);
    out[4] = hn::NegMulAdd(constant(kB * kAtB), in[1], even_b);
    out[5] = in[2];
  }
};

// G': six sums to the gradients of three taps.
struct WeightGradientLine {
  static constexpr size_t kIn = 6;
  static constexpr size_t kOut = 3;
  template <class Tag, class V = hn::Vec<Tag>>
  static HWY_INLINE void Apply(Tag tag, const V (&in)[kIn], V (&out)[kOut]) {
    const auto constant = [=](double value)
                              HWY_ATTR { return hn::Set(tag, static_cast<float>(value)); };
    const V sum_a = hn::Add(in[1], in[2]);
    const V difference_a = hn::Sub(in[1], in[2]);
    const V sum_b = hn::Add(in[3], in[4]);
    const V difference_b = hn::Sub(in[3], in[4]);
    out[0] = hn::MulAdd(constant(kAtA), sum_a,
                        hn::MulAdd(constant(kAtB), sum_b, hn::Mul(constant(kAtZero), in[0])));
    out[1] =
        hn::MulAdd(constant(kA * kAtA), difference_a, hn::Mul(constant(kB * kAtB), difference_b));
    out[2] =
        hn::MulAdd(constant(kA2 * kAtA), sum_a, hn::MulAdd(constant(kB2 * kAtB), sum_b, in[5]));
  }
};

// Applies Line to columns and rows: load(row, column) returns the input, store(row, column, vector)
// stores the result.
template <class Line, class Tag, class Load, class Store>
HWY_INLINE void TransformSquare(Tag tag, const Load& load, const Store& store) {
  using V = hn::Vec<Tag>;
  V half[Line::kIn][Line::kOut];
  HWY_UNROLL(6)
  for (size_t column = 0; column < Line::kIn; ++column) {
    V in[Line::kIn];
    HWY_UNROLL(6)
    for (size_t row = 0; row < Line::kIn; ++row) in[row] = load(row, column);
    Line::Apply(tag, in, half[column]);
  }
  HWY_UNROLL(6)
  for (size_t row = 0; row < Line::kOut; ++row) {
    V in[Line::kIn];
    V out[Line::kOut];
    HWY_UNROLL(6)
    for (size_t column = 0; column < Line::kIn; ++column) in[column] = half[column][row];
    Line::Apply(tag, in, out);
    HWY_UNROLL(6)
    for (size_t column = 0; column < Line::kOut; ++column) store(row, column, out[column]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
