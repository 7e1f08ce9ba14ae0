#include <algorithm>
#include <cmath>
#include <limits>

#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/softmax_cross_entropy/softmax_cross_entropy_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/ops/softmax_cross_entropy/softmax_row-inl.h"

#if HWY_ONCE
namespace thimble {
namespace {

// An exponential costs about as much as eight elements of a plain pass.
constexpr size_t kLogitsPerChunk = kElementsPerChunk / 8;

struct RowChunks {
  explicit RowChunks(const Shape& logits)
      : rows(static_cast<size_t>(logits[0])),
        classes(static_cast<size_t>(logits[1])),
        rows_per_chunk(std::max<size_t>(1, kLogitsPerChunk / std::max<size_t>(1, classes))),
        num_chunks((rows + rows_per_chunk - 1) / rows_per_chunk) {}

  size_t End(size_t chunk) const { return std::min(rows, (chunk + 1) * rows_per_chunk); }

  size_t rows;
  size_t classes;
  size_t rows_per_chunk;
  size_t num_chunks;
};

struct Partial {
  double loss;
  int64_t correct;
};

bool InRange(int32_t label, size_t classes) {
  return label >= 0 && static_cast<size_t>(label) < classes;
}

}  // namespace

HWY_EXPORT(RowMaximum);
HWY_EXPORT(RowSumOfExponentials);
HWY_EXPORT(RowGradient);

namespace {

// The values that determine a row's loss and gradient. The maximum's own exponential is 1 and is
// kept separate, so that small terms are not lost in the sum: a confident row has a tiny loss and
// gradient.
struct RowSoftmax {
  // `row` has at least one class.
  RowSoftmax(const float* row, size_t classes) : best(FirstMaximum(row, classes)) {
    largest = row[best];
    others =
        HWY_DYNAMIC_DISPATCH(RowSumOfExponentials)(row, best, largest) +
        HWY_DYNAMIC_DISPATCH(RowSumOfExponentials)(row + best + 1, classes - best - 1, largest);
    // An infinite maximum makes the row NaN, as it does in the formula.
    others += static_cast<double>(largest - largest);
  }

  size_t best;    // index of the first maximum
  float largest;  // the maximum
  double others;  // sum of exp(logit - largest) without the maximum's own

 private:
  // As in the reference: a NaN in first place counts as the maximum.
  static size_t FirstMaximum(const float* row, size_t classes) {
    if (std::isnan(row[0])) return 0;
    const float maximum = HWY_DYNAMIC_DISPATCH(RowMaximum)(row, classes);
    return static_cast<size_t>(std::find(row, row + classes, maximum) - row);
  }
};

}  // namespace

size_t SoftmaxCrossEntropyCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return RowChunks(call.inputs[0]).num_chunks * sizeof(Partial);
}

void SoftmaxCrossEntropyCpu::Run(const KernelCall& call) {
  const RowChunks chunks(call.in_shape(0));
  const float* logits = call.In<float>(0);
  const int32_t* labels = call.In<int32_t>(1);
  Partial* partials = reinterpret_cast<Partial*>(call.scratch.data());
  call.pool.Run(chunks.num_chunks, [&](size_t chunk, size_t /*thread*/) {
    Partial partial{0, 0};
    for (size_t b = chunk * chunks.rows_per_chunk; b < chunks.End(chunk); ++b) {
      if (!InRange(labels[b], chunks.classes)) {
        partial.loss += std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      const float* row = logits + b * chunks.classes;
      const size_t label = static_cast<size_t>(labels[b]);
      const RowSoftmax softmax(row, chunks.classes);
      partial.loss +=
          std::log1p(softmax.others) - (static_cast<double>(row[label]) - softmax.largest);
      partial.correct += softmax.best == label ? 1 : 0;
    }
    partials[chunk] = partial;
  });
  Partial total{0, 0};
  for (size_t chunk = 0; chunk < chunks.num_chunks; ++chunk) {
    total.loss += partials[chunk].loss;
    total.correct += partials[chunk].correct;
  }
  call.Out<float>(0)[0] = static_cast<float>(total.loss / call.attributes.Float("divisor"));
  call.Out<int32_t>(1)[0] = static_cast<int32_t>(total.correct);
}

void SoftmaxCrossEntropyGradCpu::Run(const KernelCall& call) {
  const RowChunks chunks(call.in_shape(0));
  const float* logits = call.In<float>(0);
  const int32_t* labels = call.In<int32_t>(1);
  float* dlogits = call.Out<float>(0);
  const double factor = call.In<float>(2)[0] / call.attributes.Float("divisor");
  call.pool.Run(chunks.num_chunks, [&](size_t chunk, size_t /*thread*/) {
    for (size_t b = chunk * chunks.rows_per_chunk; b < chunks.End(chunk); ++b) {
      const float* row = logits + b * chunks.classes;
      float* out = dlogits + b * chunks.classes;
      if (!InRange(labels[b], chunks.classes)) {
        std::fill_n(out, chunks.classes, std::numeric_limits<float>::quiet_NaN());
        continue;
      }
      const RowSoftmax softmax(row, chunks.classes);
      const double scale = factor / (1 + softmax.others);
      HWY_DYNAMIC_DISPATCH(RowGradient)
      (row, chunks.classes, softmax.largest, static_cast<float>(scale), out);
      const size_t label = static_cast<size_t>(labels[b]);
      if (label == softmax.best) {
        out[label] = static_cast<float>(-scale * softmax.others);
      } else {
        out[label] -= static_cast<float>(factor);
      }
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
