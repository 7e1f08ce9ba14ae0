#include <algorithm>
#include <array>
#include <limits>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/gemm/column_strip.h"
#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/gemm/outer_product.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/softmax_rows.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/attention/attention.h"
#include "thimble/ops/attention/sizes.h"
#include "thimble/ops/dropout/drop_rows.h"
#include "thimble/ops/dropout/weight_dropout.h"

namespace thimble {
namespace {

// Queries whose scores exist at once: two strips of the largest tile. The gradients of keys and
// values are sums over blocks of this many queries, so it is the same on all targets.
constexpr size_t kBlockQueries = 2 * kMaxTileRows;

// The arrays in a thread's scratch. Rows have whole vectors.
struct AttentionArrays {
  explicit AttentionArrays(const AttentionSizes& sizes)
      : score_stride(PaddedSoftmaxWidth(static_cast<size_t>(sizes.sources))),
        channel_stride(RoundUp(static_cast<size_t>(sizes.head_channels()), kMaxLanes)),
        scores(std::min(kBlockQueries, static_cast<size_t>(sizes.queries)) * score_stride),
        query_block(std::min(kBlockQueries, static_cast<size_t>(sizes.queries)) * channel_stride),
        source_rows(static_cast<size_t>(sizes.sources) * channel_stride),
        packed_keys(static_cast<size_t>(sizes.head_channels()) *
                    RoundUp(static_cast<size_t>(sizes.sources), kMaxTileColumns)),
        packed_values(static_cast<size_t>(sizes.sources) *
                      RoundUp(static_cast<size_t>(sizes.head_channels()), kMaxTileColumns)) {}

  // Scores, a block of queries, packed keys and values.
  size_t ForwardFloats() const {
    return RoundUp(scores + query_block + packed_keys + packed_values, kMaxLanes);
  }
  // Probabilities and their gradients, a block of queries and of dy; keys packed in both ways,
  // values in one; dk and dv.
  size_t BackwardFloats() const {
    return RoundUp(2 * scores + 2 * query_block + 2 * packed_keys + packed_values + 2 * source_rows,
                   kMaxLanes);
  }

  size_t score_stride;
  size_t channel_stride;
  size_t scores;         // (block, S)
  size_t query_block;    // (block, C / H)
  size_t source_rows;    // (S, C / H)
  size_t packed_keys;    // (C / H, S) in strips of columns
  size_t packed_values;  // (S, C / H) in strips of columns
};

// Hands out a thread's scratch, array by array.
class ScratchArrays {
 public:
  explicit ScratchArrays(float* scratch) : next_(scratch) {}
  float* Take(size_t floats) {
    float* array = next_;
    next_ += floats;
    return array;
  }

 private:
  float* next_;
};

// A matrix in scratch.
struct Rows {
  float* data;
  size_t stride;
};

// What both kernels do for one head of a sentence.
struct AttentionTask {
  AttentionTask(const KernelCall& the_call, const AttentionSizes& the_sizes, size_t task)
      : call(the_call),
        sizes(the_sizes),
        b(static_cast<int64_t>(task) / sizes.heads),
        h(static_cast<int64_t>(task) % sizes.heads),
        length(call.In<int32_t>(3)[b]) {}

  size_t sources() const { return static_cast<size_t>(length); }
  size_t channels() const { return static_cast<size_t>(sizes.head_channels()); }
  size_t stride() const { return static_cast<size_t>(sizes.channels); }
  bool HasWork() const {
    return sizes.IsLength(length) && length > 0 && sizes.queries * sizes.channels > 0;
  }
  size_t FirstQuery(size_t t) const {
    return static_cast<size_t>(sizes.Query(b, static_cast<int64_t>(t), h));
  }
  size_t FirstSource(size_t s) const {
    return static_cast<size_t>(sizes.Source(b, static_cast<int64_t>(s), h));
  }
  ConstNumbers Sources(size_t input) const {
    return ConstNumbersOf(call.inputs[input]) + FirstSource(0);
  }

  // Queries [first, first + count) of q or dy.
  void ReadQueries(size_t input, size_t first, size_t count, const Rows& to) const {
    DecodeNumberRows(ConstNumbersOf(call.inputs[input]) + FirstQuery(first),
                     {count, channels(), stride(), to.stride}, to.data);
  }
  void WriteSources(const Rows& from, size_t output) const {
    EncodeNumberRows(from.data, {sources(), channels(), from.stride, stride()},
                     NumbersOf(call.outputs[output]) + FirstSource(0));
  }
  void Drop(const WeightDropout& dropout, size_t first, size_t count, const Rows& rows) const {
    if (!dropout.drops()) return;
    DropRows(dropout.draw,
             {.epoch = dropout.epoch,
              .sample = dropout.Sample(b),
              .first_element =
                  static_cast<uint64_t>(sizes.DrawnProbability(static_cast<int64_t>(first), h)),
              .row_elements = static_cast<uint64_t>(sizes.heads * kMaxDroppedSources),
              .rows = count,
              .width = sources(),
              .stride = rows.stride},
             rows.data, rows.data);
  }

  const KernelCall& call;
  const AttentionSizes& sizes;
  int64_t b;
  int64_t h;
  int64_t length;
};

// An operand B of StripProduct.
struct PackedOperand {
  const float* data;
  size_t depth;
  size_t columns;
};

PackedOperand PackColumns(const Packer& packer, size_t depth, size_t columns, float* packed) {
  const MicroTile tile = ActiveMicroTile();
  for (size_t strip = 0; strip * tile.columns < columns; ++strip) {
    PackColumnStrip(packer, tile, {0, columns}, strip, {0, depth}, {0, depth}, packed);
  }
  return {packed, depth, columns};
}

// The transpose of k or v: (C / H, sources).
PackedOperand PackTransposed(const AttentionTask& task, size_t input, float* packed) {
  const TransposedPacker packer(task.Sources(input), task.stride());
  return PackColumns(packer, task.channels(), task.sources(), packed);
}

// k or v: (sources, C / H).
PackedOperand PackPlain(const AttentionTask& task, size_t input, float* packed) {
  const PlainPacker packer(task.Sources(input), task.stride());
  return PackColumns(packer, task.sources(), task.channels(), packed);
}

// c (rows, b.columns) = a (rows, b.depth) * b: each element is one chain of multiply-adds.
void MultiplyBlock(const Rows& a, size_t rows, const PackedOperand& b, const Rows& c) {
  const EqualPieces strips = CutEqually(rows, ActiveMicroTile().rows);
  for (size_t strip = 0; strip < strips.count; ++strip) {
    const IndexRange range = strips.Piece(strip);
    std::array<float*, kMaxTileRows> c_rows;
    for (size_t r = 0; r < range.size(); ++r) c_rows[r] = c.data + (range.begin + r) * c.stride;
    MultiplyStrip({.a = a.data + range.begin * a.stride,
                   .a_stride = a.stride,
                   .b = b.data,
                   .c_rows = c_rows.data(),
                   .rows = range.size(),
                   .columns = b.columns,
                   .depth = b.depth});
  }
}

// Queries [first, first + rows) of output 0 = a (rows, b.depth) * b: at once if it stores floats,
// otherwise through `room`.
void MultiplyIntoOutput(const AttentionTask& task, const Rows& a, size_t first, size_t rows,
                        const PackedOperand& b, const Rows& room) {
  const Numbers out = NumbersOf(task.call.outputs[0]) + task.FirstQuery(first);
  if (out.is_float()) return MultiplyBlock(a, rows, b, {out.floats(), task.stride()});
  MultiplyBlock(a, rows, b, room);
  EncodeNumberRows(room.data, {rows, task.channels(), room.stride, task.stride()}, out);
}

// sums (sources, C / H) += the transpose of a (rows, sources) times b (rows, C / H).
void AddTransposedProduct(const Rows& a, const Rows& b, size_t rows, size_t sources,
                          const Rows& sums) {
  const float* a_data = a.data;
  const float* b_data = b.data;
  for (size_t first = 0; first < sources; first += kMaxOuterRows) {
    AddOuterProducts({.a = &a_data,
                      .b = &b_data,
                      .a_offset = static_cast<ptrdiff_t>(first),
                      .a_step = a.stride,
                      .b_step = b.stride,
                      .segments = 1,
                      .depth = rows,
                      .rows = std::min(kMaxOuterRows, sources - first),
                      .columns = sums.stride,
                      .sums = sums.data + first * sums.stride,
                      .sums_stride = sums.stride});
  }
}

// Calls body(first, count) for the blocks of queries.
template <class Body>
void ForEachQueryBlock(const AttentionTask& task, const Body& body) {
  const auto queries = static_cast<size_t>(task.sizes.queries);
  for (size_t first = 0; first < queries; first += kBlockQueries) {
    body(first, std::min(kBlockQueries, queries - first));
  }
}

// The probabilities of a block of queries, before dropout.
void ComputeProbabilities(const AttentionTask& task, const Rows& queries, size_t count,
                          const PackedOperand& keys, const Rows& probabilities) {
  MultiplyBlock(queries, count, keys, probabilities);
  SoftmaxInPlace({count, task.sources(), probabilities.stride},
                 static_cast<float>(task.sizes.scale), probabilities.data);
}

void RunForward(const AttentionTask& task, const WeightDropout& dropout,
                const AttentionArrays& arrays, float* scratch) {
  ScratchArrays left(scratch);
  const Rows probabilities{left.Take(arrays.scores), arrays.score_stride};
  const Rows queries{left.Take(arrays.query_block), arrays.channel_stride};
  const PackedOperand keys = PackTransposed(task, 1, left.Take(arrays.packed_keys));
  const PackedOperand values = PackPlain(task, 2, left.Take(arrays.packed_values));
  ForEachQueryBlock(task, [&](size_t first, size_t count) {
    task.ReadQueries(0, first, count, queries);
    ComputeProbabilities(task, queries, count, keys, probabilities);
    task.Drop(dropout, first, count, probabilities);
    // These queries are no longer needed.
    MultiplyIntoOutput(task, probabilities, first, count, values, queries);
  });
}

void RunBackward(const AttentionTask& task, const WeightDropout& dropout,
                 const AttentionArrays& arrays, float* scratch) {
  ScratchArrays left(scratch);
  const Rows probabilities{left.Take(arrays.scores), arrays.score_stride};
  const Rows gradients{left.Take(arrays.scores), arrays.score_stride};
  const Rows queries{left.Take(arrays.query_block), arrays.channel_stride};
  const Rows dy{left.Take(arrays.query_block), arrays.channel_stride};
  const Rows dk{left.Take(arrays.source_rows), arrays.channel_stride};
  const Rows dv{left.Take(arrays.source_rows), arrays.channel_stride};
  const PackedOperand keys = PackPlain(task, 1, left.Take(arrays.packed_values));
  const PackedOperand transposed_keys = PackTransposed(task, 1, left.Take(arrays.packed_keys));
  const PackedOperand transposed_values = PackTransposed(task, 2, left.Take(arrays.packed_keys));
  std::fill_n(dk.data, task.sources() * dk.stride, 0.0F);
  std::fill_n(dv.data, task.sources() * dv.stride, 0.0F);
  ForEachQueryBlock(task, [&](size_t first, size_t count) {
    task.ReadQueries(0, first, count, queries);
    task.ReadQueries(4, first, count, dy);
    ComputeProbabilities(task, queries, count, transposed_keys, probabilities);
    MultiplyBlock(dy, count, transposed_values, gradients);
    task.Drop(dropout, first, count, gradients);
    SoftmaxGradientInPlace({count, task.sources(), gradients.stride},
                           static_cast<float>(task.sizes.scale), probabilities.data,
                           gradients.data);
    task.Drop(dropout, first, count, probabilities);
    AddTransposedProduct(probabilities, dy, count, task.sources(), dv);
    AddTransposedProduct(gradients, queries, count, task.sources(), dk);
    // These queries are no longer needed.
    MultiplyIntoOutput(task, gradients, first, count, keys, queries);
  });
  task.WriteSources(dk, 1);
  task.WriteSources(dv, 2);
}

// Fills the rows of a head in the sentence of an output, from `begin` on.
void FillOutputRows(const AttentionTask& task, size_t output, size_t begin, float value) {
  const auto rows = static_cast<size_t>(task.call.out_shape(output)[1]);
  const size_t first = static_cast<size_t>(task.b) * rows + begin;
  const size_t head = static_cast<size_t>(task.h) * task.channels();
  FillNumberRows(value,
                 {.rows = rows - begin,
                  .count = task.channels(),
                  .from_stride = 0,
                  .to_stride = task.stride()},
                 NumbersOf(task.call.outputs[output]) + (first * task.stride() + head));
}

// Everything that no sum is computed for: padding, sentences without sources or queries, and those
// whose length is out of range.
void FillRestOfOutputs(const AttentionTask& task) {
  const bool valid = task.sizes.IsLength(task.length);
  const float value = valid ? 0 : std::numeric_limits<float>::quiet_NaN();
  if (!task.HasWork()) FillOutputRows(task, 0, 0, value);
  for (size_t output = 1; output < task.call.outputs.size(); ++output) {
    FillOutputRows(task, output, task.HasWork() ? task.sources() : 0, value);
  }
}

// Each thread starts with a task of its own, so no more threads than tasks need scratch.
size_t AttentionScratchBytes(const AttentionSizes& sizes, size_t floats, int threads) {
  const int64_t used = std::min<int64_t>(sizes.batch * sizes.heads, threads);
  return static_cast<size_t>(used) * floats * sizeof(float);
}

// Calls run(task, scratch) for every head of every sentence that has sources.
template <class Run>
void ForEachAttentionTask(const KernelCall& call, const AttentionSizes& sizes, size_t floats,
                          const Run& run) {
  auto* scratch = reinterpret_cast<float*>(call.scratch.data());
  // The lengths decide how much of it is used.
  if (!call.scratch.empty()) scratch[call.scratch.size() / sizeof(float) - 1] = 0;
  call.pool.Run(static_cast<size_t>(sizes.batch * sizes.heads), [&](size_t index, size_t thread) {
    const AttentionTask task(call, sizes, index);
    if (task.HasWork()) run(task, scratch + thread * floats);
    FillRestOfOutputs(task);
  });
}

}  // namespace

size_t AttentionCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const AttentionSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  return AttentionScratchBytes(sizes, AttentionArrays(sizes).ForwardFloats(), limits.threads);
}

void AttentionCpu::Run(const KernelCall& call) {
  const AttentionSizes sizes(call.in_shape(0), call.in_shape(1), call.attributes);
  const AttentionArrays arrays(sizes);
  const auto dropout = WeightDropout::Of(call, call.attributes, 4);
  ForEachAttentionTask(call, sizes, arrays.ForwardFloats(),
                       [&](const AttentionTask& task, float* scratch) {
                         RunForward(task, dropout, arrays, scratch);
                       });
}

size_t AttentionGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const AttentionSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  return AttentionScratchBytes(sizes, AttentionArrays(sizes).BackwardFloats(), limits.threads);
}

void AttentionGradCpu::Run(const KernelCall& call) {
  const AttentionSizes sizes(call.in_shape(0), call.in_shape(1), call.attributes);
  const AttentionArrays arrays(sizes);
  const auto dropout = WeightDropout::Of(call, call.attributes, 5);
  ForEachAttentionTask(call, sizes, arrays.BackwardFloats(),
                       [&](const AttentionTask& task, float* scratch) {
                         RunBackward(task, dropout, arrays, scratch);
                       });
}

}  // namespace thimble
