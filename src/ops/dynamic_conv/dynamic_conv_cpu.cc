#include <algorithm>
#include <limits>

#include "thimble/base/byte_size.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/softmax_rows.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/dropout/drop_rows.h"
#include "thimble/ops/dropout/weight_dropout.h"
#include "thimble/ops/dynamic_conv/band_products.h"
#include "thimble/ops/dynamic_conv/dynamic_conv.h"
#include "thimble/ops/dynamic_conv/sizes.h"

namespace thimble {
namespace {

// Arrays and threads share no cache line.
constexpr size_t kFloatsPerCacheLine = 16;

// A thread's scratch: arrays of weights (T, K), with rows padded for softmax, and slices (T, C /
// H).
struct HeadScratch {
  HeadScratch(const DynamicConvSizes& sizes, size_t num_weights, size_t num_slices)
      : weights(num_weights),
        slices(num_slices),
        weight_stride(PaddedSoftmaxWidth(static_cast<size_t>(sizes.taps))),
        weight_floats(static_cast<size_t>(sizes.positions) * weight_stride),
        slice_floats(RoundUp(static_cast<size_t>(sizes.positions * sizes.head_channels()),
                             kFloatsPerCacheLine)) {}

  static HeadScratch Forward(const DynamicConvSizes& sizes, DType y) {
    return {sizes, 1, y == DType::kF32 ? size_t{1} : size_t{2}};
  }
  static HeadScratch Backward(const DynamicConvSizes& sizes) { return {sizes, 2, 2}; }

  size_t Floats() const { return weights * weight_floats + slices * slice_floats; }
  float* Weights(float* scratch, size_t i) const { return scratch + i * weight_floats; }
  float* Slice(float* scratch, size_t i) const {
    return scratch + weights * weight_floats + i * slice_floats;
  }

  size_t weights;
  size_t slices;
  size_t weight_stride;
  size_t weight_floats;
  size_t slice_floats;
};

DynamicConvSizes SizesOf(const OpCall& call) {
  return {call.inputs[0], call.inputs[1], call.attributes};
}

// Each thread starts with a task of its own, so no more threads than tasks need scratch.
size_t ScratchBytesOf(const DynamicConvSizes& sizes, const HeadScratch& arrays, int threads) {
  const int64_t used = std::min<int64_t>(sizes.batch * sizes.heads, threads);
  return static_cast<size_t>(used) * arrays.Floats() * sizeof(float);
}

// What both kernels do for one head of a sentence.
struct HeadTask {
  HeadTask(const KernelCall& the_call, const DynamicConvSizes& the_sizes, size_t task)
      : call(the_call),
        sizes(the_sizes),
        b(static_cast<int64_t>(task) / sizes.heads),
        h(static_cast<int64_t>(task) % sizes.heads),
        length(call.In<int32_t>(2)[b]) {}

  size_t positions() const { return static_cast<size_t>(length); }
  size_t channels() const { return static_cast<size_t>(sizes.head_channels()); }
  size_t taps() const { return static_cast<size_t>(sizes.taps); }
  // The real positions of a tensor (B, T, C), between it and a dense array.
  NumberRows ChannelRows(size_t from_stride, size_t to_stride) const {
    return {positions(), channels(), from_stride, to_stride};
  }
  size_t FirstChannel() const { return static_cast<size_t>(sizes.Channel(b, 0, h)); }
  size_t FirstLogit() const { return static_cast<size_t>(sizes.Logit(b, 0, h)); }
  size_t ChannelStride() const { return static_cast<size_t>(sizes.channels); }
  size_t LogitStride() const { return static_cast<size_t>(sizes.heads * sizes.taps); }

  void ReadChannels(size_t input, float* slice) const {
    DecodeNumberRows(ConstNumbersOf(call.inputs[input]) + FirstChannel(),
                     ChannelRows(ChannelStride(), channels()), slice);
  }
  // The softmax of the logits of all real positions.
  void ReadProbabilities(size_t stride, float* probabilities) const {
    DecodeNumberRows(ConstNumbersOf(call.inputs[1]) + FirstLogit(),
                     {positions(), taps(), LogitStride(), stride}, probabilities);
    SoftmaxInPlace({positions(), taps(), stride}, 1, probabilities);
  }
  void Drop(const WeightDropout& dropout, size_t stride, float* weights) const {
    if (!dropout.drops()) return;
    DropRows(dropout.draw,
             {.epoch = dropout.epoch,
              .sample = dropout.Sample(b),
              .first_element = static_cast<uint64_t>(sizes.DrawnWeight(0, h)),
              .row_elements = LogitStride(),
              .rows = positions(),
              .width = taps(),
              .stride = stride},
             weights, weights);
  }
  // Fills the padding of each output, or all of it if the length is out of range.
  void FillRestOfOutputs() const {
    FillRest(0, FirstChannel(), ChannelStride(), channels());
    if (call.outputs.size() > 1) FillRest(1, FirstLogit(), LogitStride(), taps());
  }
  bool HasPositions() const { return length > 0 && sizes.IsLength(length); }
  void FillRest(size_t output, size_t first, size_t stride, size_t width) const {
    const bool valid = sizes.IsLength(length);
    const size_t begin = valid ? positions() : 0;
    FillNumberRows(valid ? 0 : std::numeric_limits<float>::quiet_NaN(),
                   {.rows = static_cast<size_t>(sizes.positions) - begin,
                    .count = width,
                    .from_stride = 0,
                    .to_stride = stride},
                   NumbersOf(call.outputs[output]) + (first + begin * stride));
  }

  const KernelCall& call;
  const DynamicConvSizes& sizes;
  int64_t b;
  int64_t h;
  int64_t length;
};

// Sums a band into output 0: at once if it stores floats, otherwise through `slice`.
void SumIntoOutput(const HeadTask& task, BandSum sum, float* slice) {
  const Numbers out = NumbersOf(task.call.outputs[0]) + task.FirstChannel();
  sum.out = out.is_float() ? out.floats() : slice;
  sum.out_stride = out.is_float() ? task.ChannelStride() : task.channels();
  SumBand(sum);
  if (out.is_float()) return;
  EncodeNumberRows(slice, task.ChannelRows(task.channels(), task.ChannelStride()), out);
}

void RunForward(const HeadTask& task, const WeightDropout& dropout, const HeadScratch& arrays,
                float* scratch) {
  const auto stride = static_cast<ptrdiff_t>(arrays.weight_stride);
  const ptrdiff_t before = task.sizes.before;
  float* weights = arrays.Weights(scratch, 0);
  float* x = arrays.Slice(scratch, 0);
  task.ReadProbabilities(arrays.weight_stride, weights);
  task.Drop(dropout, arrays.weight_stride, weights);
  task.ReadChannels(0, x);
  SumIntoOutput(task,
                {.in = x,
                 .positions = task.positions(),
                 .channels = task.channels(),
                 .before = before,
                 .after = task.sizes.taps - 1 - before,
                 .band = weights + before,
                 .out_step = stride - 1,
                 .in_step = 1},
                arrays.Slice(scratch, arrays.slices - 1));
}

// From the gradients of the weights to those of the logits, which are stored.
void StoreLogitGradients(const HeadTask& task, const WeightDropout& dropout, size_t stride,
                         float* probabilities, float* gradients) {
  task.Drop(dropout, stride, gradients);
  SoftmaxGradientInPlace({task.positions(), task.taps(), stride}, 1, probabilities, gradients);
  EncodeNumberRows(gradients, {task.positions(), task.taps(), stride, task.LogitStride()},
                   NumbersOf(task.call.outputs[1]) + task.FirstLogit());
}

void RunBackward(const HeadTask& task, const WeightDropout& dropout, const HeadScratch& arrays,
                 float* scratch) {
  const size_t stride = arrays.weight_stride;
  const ptrdiff_t before = task.sizes.before;
  float* probabilities = arrays.Weights(scratch, 0);
  float* gradients = arrays.Weights(scratch, 1);
  float* x = arrays.Slice(scratch, 0);
  float* dy = arrays.Slice(scratch, 1);
  task.ReadProbabilities(stride, probabilities);
  task.ReadChannels(0, x);
  task.ReadChannels(3, dy);
  MultiplyBand({.a = dy,
                .b = x,
                .positions = task.positions(),
                .channels = task.channels(),
                .before = before,
                .taps = task.taps(),
                .products = gradients,
                .stride = stride});
  StoreLogitGradients(task, dropout, stride, probabilities, gradients);
  task.Drop(dropout, stride, probabilities);
  // The transpose of the band. x is no longer needed.
  SumIntoOutput(task,
                {.in = dy,
                 .positions = task.positions(),
                 .channels = task.channels(),
                 .before = task.sizes.taps - 1 - before,
                 .after = before,
                 .band = probabilities + before,
                 .out_step = 1,
                 .in_step = static_cast<ptrdiff_t>(stride) - 1},
                x);
}

// Runs body(task, scratch) for every head of every sentence that has real positions.
template <class Body>
void ForEachHead(const KernelCall& call, const DynamicConvSizes& sizes, const HeadScratch& arrays,
                 const Body& body) {
  auto* scratch = reinterpret_cast<float*>(call.scratch.data());
  // The lengths decide how much of it is used.
  if (!call.scratch.empty()) scratch[call.scratch.size() / sizeof(float) - 1] = 0;
  call.pool.Run(static_cast<size_t>(sizes.batch * sizes.heads), [&](size_t index, size_t thread) {
    const HeadTask task(call, sizes, index);
    if (task.HasPositions()) body(task, scratch + thread * arrays.Floats());
    task.FillRestOfOutputs();
  });
}

}  // namespace

size_t DynamicConvCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const DynamicConvSizes sizes = SizesOf(call);
  return ScratchBytesOf(sizes, HeadScratch::Forward(sizes, call.output_type(0)), limits.threads);
}

void DynamicConvCpu::Run(const KernelCall& call) {
  const DynamicConvSizes sizes(call.in_shape(0), call.in_shape(1), call.attributes);
  const auto dropout = WeightDropout::Of(call, call.attributes, 3);
  const auto arrays = HeadScratch::Forward(sizes, call.outputs[0].dtype);
  ForEachHead(call, sizes, arrays, [&](const HeadTask& task, float* scratch) {
    RunForward(task, dropout, arrays, scratch);
  });
}

size_t DynamicConvGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  const DynamicConvSizes sizes = SizesOf(call);
  return ScratchBytesOf(sizes, HeadScratch::Backward(sizes), limits.threads);
}

void DynamicConvGradCpu::Run(const KernelCall& call) {
  const DynamicConvSizes sizes(call.in_shape(0), call.in_shape(1), call.attributes);
  const auto dropout = WeightDropout::Of(call, call.attributes, 4);
  const auto arrays = HeadScratch::Backward(sizes);
  ForEachHead(call, sizes, arrays, [&](const HeadTask& task, float* scratch) {
    RunBackward(task, dropout, arrays, scratch);
  });
}

}  // namespace thimble
