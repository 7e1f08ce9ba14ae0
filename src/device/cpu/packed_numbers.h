// Reads and writes the elements of packed tensors (tensor/packed.h) as dense floats, a piece at a
// time: what is not active is zero, or left out.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/numbers.h"

namespace thimble {

// The elements of a tensor of f32, f16 or bf16, dense or packed.
struct Elements {
  ConstNumbers numbers;    // those that are stored
  PackedPlace place = {};  // of a packed tensor: which elements they are

  // Whether they can be read in place.
  bool are_floats() const { return numbers.is_float() && !place.is_packed(); }
};
inline Elements ElementsOf(const TensorView& view) {
  return {ConstNumbersOf(StoredNumbers(view)), view.packed};
}

// Elements [first, first + count); zeros where they are not active.
void DecodeElements(const Elements& from, size_t first, size_t count, float* to);
// The same for several rows, which begin `stride` elements apart.
void DecodeElementRows(const Elements& from, size_t first, const NumberRows& rows, float* to);

// The active ones of elements [first, first + count), one after the other; returns how many they
// are. `to` may be `from`, and needs space for `count` floats.
size_t GatherActive(const PackedPlace& place, size_t first, size_t count, const float* from,
                    float* to);

}  // namespace thimble
