#include "thimble/ops/dropout/drop_rows.h"

#include <algorithm>

#include "thimble/device/cpu/numbers.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/dropout/drop_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/philox-inl.h"
#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// to = words[i] below the threshold ? 0 : scale * from.
HWY_INLINE void DropElements(const DropoutDraw& draw, const uint32_t* words, const float* from,
                             float* to, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(tag)> word_tag;
    const auto dropped = hn::Lt(hn::LoadU(word_tag, words + i), hn::Set(word_tag, draw.threshold));
    const auto scaled = hn::Mul(hn::LoadU(tag, from + i), hn::Set(tag, draw.scale));
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(tag, dropped), scaled), tag, to + i);
  });
}

// Words are drawn from the last multiple of four elements on, a piece of the row at a time.
void DropRow(const DropoutDraw& draw, const DroppedRows& rows, uint64_t first_element,
             const float* from, float* to) {
  HWY_ALIGN uint32_t words[kNumbersPerPiece];
  for (size_t begin = 0; begin < rows.width;) {
    const uint64_t element = first_element + begin;
    const size_t skipped = element % kElementsPerDraw;
    const size_t count = std::min(kNumbersPerPiece - skipped, rows.width - begin);
    const auto index = static_cast<uint32_t>(element / kElementsPerDraw);
    PhiloxWords(draw.source.key(), {index, draw.stream, rows.sample, rows.epoch}, skipped + count,
                words);
    DropElements(draw, words + skipped, from + begin, to + begin, count);
    begin += count;
  }
}

void DropRowsInTurn(const DropoutDraw& draw, const DroppedRows& rows, const float* from,
                    float* to) {
  for (size_t r = 0; r < rows.rows; ++r) {
    DropRow(draw, rows, rows.first_element + r * rows.row_elements, from + r * rows.stride,
            to + r * rows.stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DropRowsInTurn);

void DropRows(const DropoutDraw& draw, const DroppedRows& rows, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(DropRowsInTurn)(draw, rows, from, to);
}

}  // namespace thimble
#endif  // HWY_ONCE
