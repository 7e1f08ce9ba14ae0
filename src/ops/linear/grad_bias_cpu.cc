#include <algorithm>
#include <array>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/linear/linear.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/linear/grad_bias_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Adds `rows` rows of `columns` floats, `stride` apart, to the sums, in order.
void AddRows(const float* data, size_t rows, size_t columns, size_t stride, double* sums) {
  constexpr size_t kVectors = 8;  // sums in registers: enough to hide the latency of an addition
  const hn::ScalableTag<double> tag;
  const hn::Rebind<float, decltype(tag)> float_tag;
  const size_t lanes = hn::Lanes(tag);
  size_t column = 0;
  for (; column + kVectors * lanes <= columns; column += kVectors * lanes) {
    hn::Vec<decltype(tag)> vectors[kVectors];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) vectors[v] = hn::LoadU(tag, sums + column + v * lanes);
    const float* from = data + column;
    for (size_t row = 0; row < rows; ++row, from += stride) {
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        const auto numbers = hn::LoadU(float_tag, from + v * lanes);
        vectors[v] = hn::Add(vectors[v], hn::PromoteTo(tag, numbers));
      }
    }
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(vectors[v], tag, sums + column + v * lanes);
  }
  for (size_t row = 0; row < rows; ++row) {
    for (size_t j = column; j < columns; ++j) {
      sums[j] += static_cast<double>(data[row * stride + j]);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(AddRows);

void LinearGradBiasCpu::Run(const KernelCall& call) {
  // Of a chunk: the sums of 64 columns fit into registers. 32 rows are converted at a time.
  constexpr size_t kColumns = 64;
  constexpr size_t kRows = 32;
  const auto rows = static_cast<size_t>(LinearRows(call.in_shape(0)));
  const auto columns = static_cast<size_t>(call.out_shape(0)[0]);
  const ConstNumbers dy = ConstNumbersOf(call.inputs[0]);  // (R, N)
  const Numbers db = NumbersOf(call.outputs[0]);           // (N)
  call.pool.Run((columns + kColumns - 1) / kColumns, [&](size_t chunk, size_t /*thread*/) {
    const size_t begin = chunk * kColumns;
    const size_t count = std::min(kColumns, columns - begin);
    // Batches of tokens have thousands of rows; a sum in double stays exact to the last bit of a
    // float.
    std::array<double, kColumns> sums{};
    alignas(64) std::array<float, kRows * kColumns> copy;
    if (dy.is_float()) {
      HWY_DYNAMIC_DISPATCH(AddRows)(dy.floats() + begin, rows, count, columns, sums.data());
    } else {
      for (size_t row = 0; row < rows; row += kRows) {
        const size_t some = std::min(kRows, rows - row);
        DecodeNumberRows(dy + (row * columns + begin), {some, count, columns, kColumns},
                         copy.data());
        HWY_DYNAMIC_DISPATCH(AddRows)(copy.data(), some, count, kColumns, sums.data());
      }
    }
    float* result = RoomForNumbers(db + begin, copy.data());
    for (size_t j = 0; j < count; ++j) result[j] = static_cast<float>(sums[j]);
    WriteNumbers(result, count, db + begin);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
