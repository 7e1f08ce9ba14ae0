// The order of a tensor's elements in files. In the arena, convolution weights are (O, KH, KW, I),
// as the kernels read them; in files they are (O, I, KH, KW), as PyTorch expects. The conversion
// transposes each output channel O, so it is done channel by channel in a small buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "thimble/tensor/dtype.h"
#include "thimble/tensor/shape.h"

namespace thimble {

enum class FileLayout : uint8_t {
  kAsStored,    // the file has the arena's order
  kOhwiToOihw,  // arena (O, KH, KW, I), file (O, I, KH, KW); rank 4 only
};

// One output channel of a convolution weight.
struct ChannelSlice {
  int64_t positions = 0;  // KH * KW
  int64_t inputs = 0;     // I
  size_t element_bytes = 0;

  size_t size_bytes() const { return static_cast<size_t>(positions * inputs) * element_bytes; }
};

// The shape in the file of a tensor that has shape `stored` in the arena. Requires rank 4 for
// kOhwiToOihw.
Shape FileShape(const Shape& stored, FileLayout layout);

// The slice of a tensor that is (O, KH, KW, I) in the arena.
ChannelSlice SliceOf(const Shape& stored, DType dtype);

// Copy one slice exactly: `stored` is (KH, KW, I), `file` is (I, KH, KW). Require that both have
// the size of the slice and do not overlap.
void SliceToFile(const ChannelSlice& slice, std::span<const std::byte> stored,
                 std::span<std::byte> file);
void SliceFromFile(const ChannelSlice& slice, std::span<const std::byte> file,
                   std::span<std::byte> stored);

}  // namespace thimble
