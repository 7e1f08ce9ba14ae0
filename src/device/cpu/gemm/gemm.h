// Gemm: C = A * B with operands read through packers, within given scratch. README.md explains how.
//
//   const PlainPacker x_packer(x, depth);         // A (rows, depth)
//   const TransposedPacker w_packer(w, depth);    // B (depth, columns), stored as its transpose
//   const DenseRows y_rows(y, columns);
//   Gemm({{rows, columns, depth}, x_packer, w_packer, y_rows}, call.scratch, call.pool);
#pragma once

#include <cstddef>
#include <span>

#include "thimble/base/function_ref.h"
#include "thimble/device/cpu/gemm/blocking.h"
#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {

// Stores the addresses of rows [row, row + rows) of C. Called by several threads at once.
using RowAddresses = FunctionRef<void(size_t row, size_t rows, float** addresses)>;

// C with rows `row_stride` floats apart.
class DenseRows {
 public:
  DenseRows(float* data, size_t row_stride) : data_(data), row_stride_(row_stride) {}
  void operator()(size_t row, size_t rows, float** addresses) const {
    for (size_t r = 0; r < rows; ++r) addresses[r] = data_ + (row + r) * row_stride_;
  }

 private:
  float* data_;
  size_t row_stride_;
};

// Refers to its packers and rows: they must outlive it (no temporaries).
struct GemmProblem {
  GemmShape shape;
  Packer a;        // (rows, depth)
  Packer b;        // (depth, columns)
  RowAddresses c;  // (rows, columns); overwritten, must not overlap the operands
};

// Scratch bytes for Gemm; at most threads * scratch_bytes_per_thread if that is at least 64 KiB per
// thread.
size_t GemmScratchBytes(const GemmShape& shape, size_t threads, size_t scratch_bytes_per_thread);

// Requires at least the bytes that GemmScratchBytes gave for this shape and the pool's threads,
// 64-byte aligned. A depth of zero gives zeros.
void Gemm(const GemmProblem& problem, std::span<std::byte> scratch, ThreadPool& pool);

}  // namespace thimble
