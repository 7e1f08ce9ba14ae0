#include "thimble/device/cpu/gemm/packer.h"

#include <algorithm>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/gemm/packer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Strided matrices: in (columns, rows), out (rows, columns).
struct Transposition {
  const float* in;
  size_t in_stride;
  float* out;
  size_t out_stride;
  size_t rows;
  size_t columns;
};

void TransposeScalar(const Transposition& t, size_t first_column) {
  for (size_t row = 0; row < t.rows; ++row) {
    for (size_t column = first_column; column < t.columns; ++column) {
      t.out[row * t.out_stride + column] = t.in[column * t.in_stride + row];
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Transposes 4 x 4 floats.
void TransposeBlock(const float* in, size_t in_stride, float* out, size_t out_stride) {
  const hn::FixedTag<float, 4> tag;
  const auto c0 = hn::LoadU(tag, in);
  const auto c1 = hn::LoadU(tag, in + in_stride);
  const auto c2 = hn::LoadU(tag, in + 2 * in_stride);
  const auto c3 = hn::LoadU(tag, in + 3 * in_stride);
  const auto low01 = hn::InterleaveLower(tag, c0, c1);
  const auto low23 = hn::InterleaveLower(tag, c2, c3);
  const auto high01 = hn::InterleaveUpper(tag, c0, c1);
  const auto high23 = hn::InterleaveUpper(tag, c2, c3);
  hn::StoreU(hn::ConcatLowerLower(tag, low23, low01), tag, out);
  hn::StoreU(hn::ConcatUpperUpper(tag, low23, low01), tag, out + out_stride);
  hn::StoreU(hn::ConcatLowerLower(tag, high23, high01), tag, out + 2 * out_stride);
  hn::StoreU(hn::ConcatUpperUpper(tag, high23, high01), tag, out + 3 * out_stride);
}
#endif

void Transpose(const float* in, size_t in_stride, size_t rows, size_t columns, float* out,
               size_t out_stride) {
  const Transposition t{in, in_stride, out, out_stride, rows, columns};
  size_t column = 0;
#if HWY_TARGET != HWY_SCALAR
  if (t.rows >= 4) {
    for (; column + 4 <= t.columns; column += 4) {
      const float* from = in + column * in_stride;
      float* to = out + column;
      size_t row = 0;
      for (; row + 4 <= t.rows; row += 4) {
        TransposeBlock(from + row, in_stride, to + row * out_stride, out_stride);
      }
      // The last rows, if they do not fill a block, in a block that overlaps the previous one.
      if (row < t.rows) {
        row = t.rows - 4;
        TransposeBlock(from + row, in_stride, to + row * out_stride, out_stride);
      }
    }
  }
#endif
  TransposeScalar(t, column);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(Transpose);

void PlainPacker::operator()(const MatrixBlock& block, float* panel, size_t stride) const {
  DecodeNumberRows(data_ + (block.row * row_stride_ + block.column),
                   {block.rows, block.columns, row_stride_, stride}, panel);
}

void TransposedPacker::operator()(const MatrixBlock& block, float* panel, size_t stride) const {
  const size_t first = block.column * row_stride_ + block.row;
  if (data_.are_floats()) {
    HWY_DYNAMIC_DISPATCH(Transpose)
    (data_.numbers.floats() + first, row_stride_, block.rows, block.columns, panel, stride);
    return;
  }
  // A piece at a time: its numbers are converted first.
  constexpr size_t kColumns = 32;
  constexpr size_t kRows = 64;
  alignas(64) float copy[kColumns * kRows];
  for (size_t column = 0; column < block.columns; column += kColumns) {
    const size_t columns = std::min(kColumns, block.columns - column);
    for (size_t row = 0; row < block.rows; row += kRows) {
      const size_t rows = std::min(kRows, block.rows - row);
      DecodeElementRows(data_, first + column * row_stride_ + row,
                        {columns, rows, row_stride_, kRows}, copy);
      HWY_DYNAMIC_DISPATCH(Transpose)
      (copy, kRows, rows, columns, panel + row * stride + column, stride);
    }
  }
}

void StoreTransposed(const float* from, const TransposedRows& rows, Numbers to) {
  const TransposedPacker transpose(from, rows.from_stride);
  if (to.is_float()) {
    return transpose({0, rows.rows, 0, rows.columns}, to.floats(), rows.to_stride);
  }
  // A piece at a time: its numbers are rounded afterwards.
  constexpr size_t kRows = 32;
  constexpr size_t kColumns = 64;
  alignas(64) float copy[kRows * kColumns];
  for (size_t row = 0; row < rows.rows; row += kRows) {
    for (size_t column = 0; column < rows.columns; column += kColumns) {
      const MatrixBlock block{row, std::min(kRows, rows.rows - row), column,
                              std::min(kColumns, rows.columns - column)};
      transpose(block, copy, kColumns);
      EncodeNumberRows(copy, {block.rows, block.columns, kColumns, rows.to_stride},
                       to + (row * rows.to_stride + column));
    }
  }
}

}  // namespace thimble
#endif  // HWY_ONCE
