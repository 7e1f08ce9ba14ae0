// Packer: how the matrix product reads an operand. The only code that depends on storage format and
// access pattern; all later code sees fp32 panels.
#pragma once

#include <cstddef>

#include "thimble/base/function_ref.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/packed_numbers.h"

namespace thimble {

// Rows [row, row + rows) and columns [column, column + columns) of a matrix.
struct MatrixBlock {
  size_t row = 0;
  size_t rows = 0;
  size_t column = 0;
  size_t columns = 0;
};

// Writes the block as fp32, row after row, one row every `stride` floats; does not write between
// the rows. Called by several threads at once, with blocks inside the matrix.
using Packer = FunctionRef<void(const MatrixBlock& block, float* panel, size_t stride)>;

// A row-major matrix in memory, rows `row_stride` numbers apart.
class PlainPacker {
 public:
  PlainPacker(ConstNumbers data, size_t row_stride) : data_(data), row_stride_(row_stride) {}
  void operator()(const MatrixBlock& block, float* panel, size_t stride) const;

 private:
  ConstNumbers data_;  // (rows, columns)
  size_t row_stride_;
};

// The transpose of a matrix in memory: element (row, column) is data[column * row_stride + row].
class TransposedPacker {
 public:
  TransposedPacker(ConstNumbers data, size_t row_stride) : data_{data}, row_stride_(row_stride) {}
  TransposedPacker(const Elements& data, size_t row_stride)
      : data_(data), row_stride_(row_stride) {}
  void operator()(const MatrixBlock& block, float* panel, size_t stride) const;

 private:
  Elements data_;  // (columns, rows)
  size_t row_stride_;
};

// Stores the transpose of floats: row r, column c of `to` is from[c * from_stride + r].
struct TransposedRows {
  size_t rows = 0;
  size_t columns = 0;
  size_t from_stride = 0;
  size_t to_stride = 0;
};
void StoreTransposed(const float* from, const TransposedRows& rows, Numbers to);

}  // namespace thimble
