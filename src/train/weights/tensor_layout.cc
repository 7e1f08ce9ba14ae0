#include "thimble/train/weights/tensor_layout.h"

#include <cstring>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// to (columns, rows) = transposed from (rows, columns).
void Transpose(int64_t rows, int64_t columns, size_t element_bytes, std::span<const std::byte> from,
               std::span<std::byte> to) {
  const size_t size_bytes = static_cast<size_t>(rows * columns) * element_bytes;
  THIMBLE_CHECK(from.size() == size_bytes && to.size() == size_bytes,
                "the slice has {} bytes, the buffers have {} and {}", size_bytes, from.size(),
                to.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      std::memcpy(&to[static_cast<size_t>(column * rows + row) * element_bytes],
                  &from[static_cast<size_t>(row * columns + column) * element_bytes],
                  element_bytes);
    }
  }
}

}  // namespace

Shape FileShape(const Shape& stored, FileLayout layout) {
  if (layout == FileLayout::kAsStored) return stored;
  THIMBLE_CHECK(stored.rank() == 4, "shape {} is not (O, KH, KW, I)", ToString(stored));
  return {stored[0], stored[3], stored[1], stored[2]};
}

ChannelSlice SliceOf(const Shape& stored, DType dtype) {
  THIMBLE_CHECK(stored.rank() == 4, "shape {} is not (O, KH, KW, I)", ToString(stored));
  return {stored[1] * stored[2], stored[3], SizeBytes(dtype)};
}

void SliceToFile(const ChannelSlice& slice, std::span<const std::byte> stored,
                 std::span<std::byte> file) {
  Transpose(slice.positions, slice.inputs, slice.element_bytes, stored, file);
}

void SliceFromFile(const ChannelSlice& slice, std::span<const std::byte> file,
                   std::span<std::byte> stored) {
  Transpose(slice.inputs, slice.positions, slice.element_bytes, file, stored);
}

}  // namespace thimble
