// How the copy engine sees the factors of a product of 16-bit matrices.
#pragma once

#include <array>
#include <cstdint>

#include "thimble/device/cuda/product/matrix_product.h"
#include "thimble/device/cuda/tensor_map.h"
#include "thimble/device/cuda/wide_product.cuh"

namespace thimble::wide {

inline int64_t Quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A factor of outer x inner numbers, of which boxes hold `outer_box` rows or columns.
inline CUtensorMap MapOf(const ProductFactor& factor, int64_t outer, int64_t inner, int outer_box) {
  const auto lines = static_cast<uint64_t>(factor.lines_across ? inner : outer);
  const auto numbers = static_cast<uint64_t>(factor.lines_across ? outer : inner);
  const auto box = static_cast<uint32_t>(outer_box);
  const std::array<uint32_t, 2> sides = {factor.lines_across ? box : kInner,
                                         factor.lines_across ? kInner : box};
  return MapOfBoxes(factor.numbers.data, factor.numbers.type, std::array{numbers, lines}, sides);
}

// The copy engine reads lines that begin at multiples of 16 bytes.
inline bool CanBeMapped(const ProductFactor& factor, int64_t outer, int64_t inner) {
  return (factor.lines_across ? outer : inner) % 8 == 0 &&
         reinterpret_cast<uintptr_t>(factor.numbers.data) % 16 == 0;
}

}  // namespace thimble::wide
