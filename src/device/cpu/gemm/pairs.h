// Pairs of bf16 numbers: where the active target multiplies both numbers of a pair and adds the two
// products in one instruction, bf16 operands need not be converted, and a product takes half the
// time. A pair is kept in the place of one float: the first number in the lower half, the second in
// the upper half. So all code that only moves floats moves pairs as well.
//
// The sums are floats. Products of bf16 numbers are exact in them; numbers too small for a
// normalized float count as zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/tensor/dtype.h"

namespace thimble {

// Whether a product of two operands can be computed in pairs along a sum of `depth` products, if
// the target has them. Scratch is planned for both ways, so that a plan does not depend on the
// target.
inline bool CanBePaired(DType a, DType b, int64_t depth) {
  return a == DType::kBF16 && b == DType::kBF16 && depth % 2 == 0;
}

// pairs[i] = {first[i], second[i]}; null stands for zeros.
void PairNumbers(const BF16* first, const BF16* second, size_t count, float* pairs);

// The rows of a matrix of bf16 numbers in pairs: row r of `block` consists of the rows 2 r and
// 2 r + 1 that `packer` writes.
void PackPairs(const Packer& packer, const MatrixBlock& block, float* panel, size_t stride);

}  // namespace thimble
