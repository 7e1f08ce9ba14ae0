// OutputTile: where LineConvolution makes its sums, for outputs that store any kind of number.
#pragma once

#include <array>
#include <cstddef>

#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/numbers.h"

namespace thimble {

// Some channels of the pixels of an output line.
struct OutputLine {
  Numbers out;
  ConstNumbers added;  // null if nothing is added after this product
  size_t pixel_stride;
};

// A tile of output pixels. Sums are made in place if the output stores floats, otherwise in a copy
// that is rounded once. What is added is read likewise.
class OutputTile {
 public:
  OutputTile(const OutputLine& line, size_t columns) : line_(line), columns_(columns) {}

  // Moves the tile to `rows` pixels from `pixel` on.
  void MoveTo(size_t pixel, size_t rows) {
    first_ = pixel * line_.pixel_stride;
    num_rows_ = rows;
    SetRows(line_.out + first_, sums_copy_, sums_);
    if (line_.added.data == nullptr) return;
    const ConstNumbers added = line_.added + first_;
    SetRows<ConstNumbers, const float>(added, added_copy_, added_);
    if (!added.is_float()) {
      DecodeNumberRows(added, {rows, columns_, line_.pixel_stride, kMaxTileColumns}, added_copy_);
      return;
    }
    // Read after the product; by then the prefetch has completed.
    for (size_t r = 0; r < rows; ++r) {
      __builtin_prefetch(added_[r]);
      __builtin_prefetch(added_[r] + columns_ - 1);
    }
  }

  float* const* sums() const { return sums_.data(); }
  // Null if nothing is added.
  const float* const* added() const {
    return line_.added.data == nullptr ? nullptr : added_.data();
  }

  void Store() const {
    if (line_.out.is_float()) return;
    EncodeNumberRows(sums_copy_, {num_rows_, columns_, kMaxTileColumns, line_.pixel_stride},
                     line_.out + first_);
  }

 private:
  // The addresses of the rows of these numbers if they are floats, otherwise of the copy.
  template <class Pointer, class Float>
  void SetRows(Pointer numbers, Float* copy, std::array<Float*, kMaxTileRows>& rows) {
    Float* first = numbers.is_float() ? numbers.floats() : copy;
    const size_t stride = numbers.is_float() ? line_.pixel_stride : kMaxTileColumns;
    for (size_t r = 0; r < num_rows_; ++r) rows[r] = first + r * stride;
  }

  const OutputLine& line_;
  size_t columns_;
  size_t first_ = 0;
  size_t num_rows_ = 0;
  std::array<float*, kMaxTileRows> sums_;
  std::array<const float*, kMaxTileRows> added_;
  alignas(64) float sums_copy_[kMaxTileRows * kMaxTileColumns];
  alignas(64) float added_copy_[kMaxTileRows * kMaxTileColumns];
};

}  // namespace thimble
