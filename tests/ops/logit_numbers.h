// Numbers whose products are logits, for tests of ops that are fused with an output projection.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/op_inputs.h"
#include "tests/support/run_op.h"

namespace thimble {

// Of a size that makes the logits' about 1, as in a network. `coarse`: multiples of 1/4, so that
// logits are exact in floats, and some are equal.
inline std::vector<double> LogitNumbers(uint64_t seed, uint32_t stream, int64_t rows,
                                        int64_t channels, bool coarse) {
  auto numbers = RandomNormals(seed, stream, static_cast<size_t>(rows * channels));
  const double scale = 1.5 * std::pow(static_cast<double>(channels), -0.25);
  for (double& number : numbers) number = coarse ? std::round(4 * number) / 4 : scale * number;
  return numbers;
}

inline OpData FloatData(const std::vector<double>& numbers) {
  return {{numbers.begin(), numbers.end()}, {}};
}

// Two tokens and three words: the logits are (0, log 2, log 5) and (log 5, 0, log 2).
inline const float kLog2 = std::log(2.0F);
inline const float kLog5 = std::log(5.0F);
inline const float kLog8 = std::log(8.0F);
inline const OpData kTwoUnitTokens{{1, 0, 0, 1}, {}};
inline const OpData kThreeWords{{0, kLog5, kLog2, 0, kLog5, kLog2}, {}};

// Elements [begin, end).
template <class T>
std::vector<T> SliceOf(const std::vector<T>& whole, int64_t begin, int64_t end) {
  return {whole.begin() + begin, whole.begin() + end};
}

// The bytes of the best kernel's scratch.
inline size_t ScratchOf(const OpCase& op_case, const KernelLimits& limits) {
  const PreparedCase prepared(op_case);
  return prepared.op.kernels().front().scratch_bytes(prepared.call(), limits);
}

}  // namespace thimble
