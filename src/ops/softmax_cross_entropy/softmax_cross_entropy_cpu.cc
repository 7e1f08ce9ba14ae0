#include <algorithm>
#include <cmath>
#include <limits>

#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy.h"
#include "thimble/ops/softmax_cross_entropy/softmax_row.h"

namespace thimble {
namespace {

// An exponential costs about as much as eight elements of a plain pass.
constexpr size_t kLogitsPerChunk = kElementsPerChunk / 8;

struct LogitChunks {
  explicit LogitChunks(const Shape& logits)
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

size_t SoftmaxCrossEntropyCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return LogitChunks(call.inputs[0]).num_chunks * sizeof(Partial);
}

void SoftmaxCrossEntropyCpu::Run(const KernelCall& call) {
  const LogitChunks chunks(call.in_shape(0));
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
  const LogitChunks chunks(call.in_shape(0));
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
      ScaledExponentials(row, chunks.classes, softmax.largest, static_cast<float>(scale), out);
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
