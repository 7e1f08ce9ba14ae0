// One kernel if a block can have a whole sentence of a head; otherwise a first one computes dlogits
// and stores the weights in scratch, (B, T, H, K), and a second one computes dx. No bit of a result
// depends on which.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/async_copy.cuh"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/dropout/weight_dropout.cuh"
#include "thimble/ops/dynamic_conv/band_convolution.cuh"
#include "thimble/ops/dynamic_conv/dynamic_conv.h"
#include "thimble/ops/dynamic_conv/head_rows.cuh"
#include "thimble/ops/dynamic_conv/tap_products.cuh"
#include "thimble/ops/dynamic_conv/tap_weights.cuh"
#include "thimble/ops/dynamic_conv/weight_band.cuh"

namespace thimble {
namespace {

// ---- dlogits, and dx of whole sentences: a block has some positions of a head of a sentence, or
// all of them.

// Blocks of a multiprocessor at least. Products in floats, and numbers of any type, need more
// registers.
template <class Storage>
constexpr int kGradientBlocks = kTapBlocks;
template <>
constexpr int kGradientBlocks<float> = 4;
template <>
constexpr int kGradientBlocks<AnyNumber> = 2;

struct GradientPlan {
  bool whole;            // a block has a whole sentence and stores dx too
  int chunk;             // channels at once
  int tile = 0;          // positions of a block
  int sources = 0;       // rows of x in shared memory
  bool aligned = false;  // see StageRows

  size_t SharedBytes(int taps, size_t element_bytes) const {
    return static_cast<size_t>(tile + sources) * RowBytes(chunk, element_bytes) +
           FloatBytes((whole ? BandFloats(tile, taps) : 0) +
                      tile * (2 * TapPitch(taps) + FloatsForKept(taps)));
  }
  unsigned Threads() const { return whole ? TapThreads(tile, chunk) : kMostTapThreads; }
  dim3 Blocks(const TapSizes& sizes) const {
    return {static_cast<unsigned>(sizes.batch), static_cast<unsigned>(sizes.heads),
            static_cast<unsigned>(PartsOfSize(sizes.positions, tile))};
  }
};

template <class Element>
GradientPlan GradientPlanFor(const TapSizes& sizes) {
  // Up to so many taps, the rows that a tile reads fit shared memory. Nothing but taps and channels
  // decides about the chunk, because the sums of chunks are added up.
  constexpr int kMostTapsOfWideChunks = 128;
  // Of longer sentences there are too few in a batch for one block each.
  constexpr int kMostWholePositions = 80;
  // Two such blocks fit a multiprocessor.
  constexpr size_t kMostWholeBytes = size_t{112} << 10;
  // Softmax uses eight threads for each of them if there are 31 taps.
  constexpr int kMostTilePositions = 28;
  GradientPlan plan{.whole = true, .chunk = kLeastChunk};
  if (sizes.taps <= kMostTapsOfWideChunks) plan.chunk = ChunkFor(sizes.head_channels);
  if (sizes.head_channels <= plan.chunk && sizes.positions <= kMostWholePositions) {
    plan.tile = plan.sources = std::max(kBandResults, WholeMultiple(sizes.positions, kBandResults));
    if (plan.SharedBytes(sizes.taps, sizeof(Element)) <= kMostWholeBytes) return plan;
  }
  plan.whole = false;
  plan.tile = TilePositions(sizes.positions, kMostTilePositions);
  const auto fits = [&] {
    plan.sources = std::min(sizes.positions, plan.tile + sizes.taps - 1);
    return plan.SharedBytes(sizes.taps, sizeof(Element)) <= kMostTapSharedBytes;
  };
  while (!fits() && plan.tile > kBandResults) {
    plan.tile = WholeMultiple(plan.tile / 2, kBandResults);
  }
  return plan;
}

template <class Storage>
struct GradientArrays {
  InNumbers<Storage> x, logits, dy;
  const int32_t* lengths;
  OutNumbers<Storage> dx, dlogits;  // perhaps in the place of x or dy, and logits
};

// Shared memory of a block.
template <class Storage>
struct GradientShared {
  RowElement<Storage>* dy;
  RowElement<Storage>* x;
  float* probabilities;  // (positions, TapPitch)
  float* derivatives;    // by the weights, likewise
  float* kept;           // see SentenceDraw
  float* band;           // of whole sentences

  __device__ GradientShared(const GradientPlan& plan, int taps, float* shared) {
    const int pitch = RowPitch<RowElement<Storage>>(plan.chunk);
    dy = reinterpret_cast<RowElement<Storage>*>(shared);
    x = dy + plan.tile * pitch;
    probabilities = reinterpret_cast<float*>(x + plan.sources * pitch);
    derivatives = probabilities + plan.tile * TapPitch(taps);
    band = derivatives + plan.tile * TapPitch(taps);
    kept = band + (plan.whole ? BandFloats(plan.tile, taps) : 0);
  }
};

// Stores dlogits of `rows` real positions from `first` on. use(row, tap, weights) is called for all
// weights, see ComputeTapWeights. Afterwards the last chunk of dy is in shared memory, and other
// threads have seen what `use` did.
template <class Storage, class Use>
__device__ void StoreTapGradients(const TapSizes& sizes, const GradientPlan& plan,
                                  const SentenceHead& head, int first, int rows,
                                  const SentenceDraw& draw, const GradientArrays<Storage>& arrays,
                                  const GradientShared<Storage>& shared, const Use& use) {
  const int pitch = RowPitch<RowElement<Storage>>(plan.chunk);
  const int64_t at_logits = sizes.Row(head.b, first, head.h) * sizes.taps;
  const int logits_stride = sizes.heads * sizes.taps;
  const int source = max(0, first - sizes.before);
  const int sources = min(head.length, first + rows + sizes.after()) - source;
  // Once even if there are no channels.
#pragma unroll 1
  for (int c = 0; c == 0 || c * plan.chunk < sizes.head_channels; ++c) {
    const ChannelChunk chunk(sizes, plan.chunk, c);
    const auto stage = [&](InNumbers<Storage> from, int t, int count, RowElement<Storage>* to) {
      StageRows<Storage>(from + (sizes.Channel(head.b, t, head.h) + chunk.first), sizes.channels,
                         chunk, count, plan.aligned, to);
    };
    if (c > 0) __syncthreads();  // the chunk before is no longer read
    stage(arrays.x, source, sources, shared.x);
    stage(arrays.dy, first, rows, shared.dy);
    if (c == 0) {
      ComputeTapWeights<true, Storage>(
          TapRows{.rows = rows, .stride = logits_stride, .first_drawn = sizes.Drawn(first, head.h)},
          arrays.logits + at_logits, sizes.taps, draw, shared.probabilities, use);
    }
    WaitForCopies();
    __syncthreads();
    MultiplyTapRows(shared.dy, shared.x, pitch, plan.chunk,
                    TapProducts{.rows = rows,
                                .sources = sources,
                                .shift = sizes.before + source - first,
                                .taps = sizes.taps,
                                .adds = c > 0,
                                .products = shared.derivatives,
                                .pitch = TapPitch(sizes.taps)});
  }
  __syncthreads();
  StoreLogitGradients<Storage>(arrays.dlogits + at_logits, logits_stride, rows, sizes.taps,
                               draw.Scale(), shared.probabilities, shared.derivatives,
                               [&](int row, int k) {
                                 const int s = first + row + k - sizes.before;
                                 return k < sizes.taps && s >= 0 && s < head.length;
                               });
}

// Calls visit(i) for the indices of all logits of padded positions [first, end).
template <class Visit>
__device__ void ForEachPaddedLogit(const TapSizes& sizes, const SentenceHead& head, int first,
                                   int end, const Visit& visit) {
  const int count = (end - first) * sizes.taps;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const int t = first + i / sizes.taps;
    visit(sizes.Row(head.b, t, head.h) * sizes.taps + i % sizes.taps);
  }
}

// Of whole sentences: a block for each and head.
template <class Storage>
__global__ void __launch_bounds__(kMostTapThreads, kGradientBlocks<Storage>)
    SentenceGradientKernel(TapSizes sizes, GradientPlan plan, WeightDraw dropout,
                           GradientArrays<Storage> arrays) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const SentenceHead head(sizes, arrays.lengths, static_cast<int>(blockIdx.x),
                          static_cast<int>(blockIdx.y));
  const GradientShared<Storage> places(plan, sizes.taps, shared);
  const SentenceDraw draw(dropout, head.b, places.kept);
  if (head.length > 0) {
    StoreTapGradients<Storage>(sizes, plan, head, 0, head.length, draw, arrays, places,
                               [&](int t, int tap, const GroupOfTaps& weights) {
#pragma unroll
                                 for (int i = 0; i < kTapGroup; ++i) {
                                   const int k = tap + i;
                                   const int s = t + k - sizes.before;
                                   if (k >= sizes.taps || s < 0 || s >= head.length) continue;
                                   places.band[BandPlace(sizes.taps, s, sizes.taps - 1 - k)] =
                                       weights[i];
                                 }
                               });
  }
  ForEachPaddedLogit(sizes, head, head.length, sizes.positions,
                     [&](int64_t i) { StoreNumber(head.Padding(), arrays.dlogits + i); });
  StoreBandResults<Storage>(sizes, head, ChannelChunk(sizes, plan.chunk, 0),
                            BandTile<Storage>{.first = 0,
                                              .count = sizes.positions,
                                              .rows = places.dy,
                                              .first_row = 0,
                                              .before = sizes.after(),
                                              .band = places.band},
                            plan.aligned, arrays.dx + sizes.Channel(head.b, 0, head.h));
}

// Only dlogits; the weights are stored in scratch. A block for each tile of each head of a
// sentence.
template <class Storage>
__global__ void __launch_bounds__(kMostTapThreads, kGradientBlocks<Storage>)
    TapGradientKernel(TapSizes sizes, GradientPlan plan, WeightDraw dropout,
                      GradientArrays<Storage> arrays, float* weights) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const SentenceHead head(sizes, arrays.lengths, static_cast<int>(blockIdx.x),
                          static_cast<int>(blockIdx.y));
  const GradientShared<Storage> places(plan, sizes.taps, shared);
  const SentenceDraw draw(dropout, head.b, places.kept);
  const int first = static_cast<int>(blockIdx.z) * plan.tile;
  const int end = min(sizes.positions, first + plan.tile);
  const int real_end = min(end, head.length);
  if (first < real_end) {
    float* of_tile = weights + sizes.Row(head.b, first, head.h) * sizes.taps;
    StoreTapGradients<Storage>(sizes, plan, head, first, real_end - first, draw, arrays, places,
                               [&](int row, int tap, const GroupOfTaps& group) {
                                 float* to = of_tile + (row * sizes.heads * sizes.taps + tap);
#pragma unroll
                                 for (int i = 0; i < kTapGroup; ++i) {
                                   if (tap + i < sizes.taps) to[i] = group[i];
                                 }
                               });
  }
  ForEachPaddedLogit(sizes, head, max(first, real_end), end, [&](int64_t i) {
    StoreNumber(head.Padding(), arrays.dlogits + i);
    weights[i] = 0;
  });
}

// dx, with the weights in scratch.
template <class Storage, bool kWalks>
__global__ void __launch_bounds__(kMostTapThreads, kConvBlocks<kWalks>)
    InputGradientKernel(TapSizes sizes, ConvPlan plan, const float* weights, const int32_t* lengths,
                        ConvArrays<Storage> arrays) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const ConvBlock block(plan);
  const SentenceHead head(sizes, lengths, block.b, block.h);
  const ConvShared<Storage> places(plan, sizes.taps, shared);
  const int before = sizes.after();
  ConvolvePart<kWalks>(
      sizes, plan, block, head, before, arrays, places, [&](const BandTile<Storage>& tile) {
        // The positions whose taps read some of the tile's.
        const int first = max(0, tile.first - before);
        const int end = min(head.length, tile.first + tile.count + sizes.before);
        const float* from = weights + sizes.Row(head.b, first, head.h) * sizes.taps;
        ForEachTapLane(end - first, sizes.taps, [&](const TapLane& part) {
          const float* of_row = from + part.row * sizes.heads * sizes.taps;
#pragma unroll 1
          for (int tap = part.lane * kTapGroup; tap < sizes.taps && part.exists;
               tap += part.lanes * kTapGroup) {
#pragma unroll
            for (int i = 0; i < kTapGroup; ++i) {
              const int k = tap + i;
              const int result = first + part.row + k - sizes.before - tile.first;
              if (k >= sizes.taps || result < 0 || result >= tile.count) continue;
              CopyWordAsync(places.band + BandPlace(sizes.taps, result, sizes.taps - 1 - k),
                            of_row + k, sizeof(float));
            }
          }
        });
      });
}

// ---- Launches

float* TapWeightsOf(const KernelCall& call) {
  return reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
}

template <class Storage>
void LaunchInputGradient(const KernelCall& call, const TapSizes& sizes) {
  const TensorView& dy = call.inputs[3];
  const TensorView& dx = call.outputs[0];
  constexpr size_t kBytes = sizeof(RowElement<Storage>);
  ConvPlan plan = ConvPlanFor(sizes, kBytes, 0, dy.data == dx.data);
  plan.aligned = RowsAreAligned<Storage>(sizes, dy, dx);
  const auto tile_kernel = InputGradientKernel<Storage, false>;
  const auto walking_kernel = InputGradientKernel<Storage, true>;
  static const bool permitted =
      PermitTapSharedBytes(tile_kernel) && PermitTapSharedBytes(walking_kernel);
  static_cast<void>(permitted);
  const auto kernel = plan.walks() ? walking_kernel : tile_kernel;
  kernel<<<plan.Blocks(sizes), TapThreads(plan.tile, plan.chunk),
           plan.SharedBytes(sizes.taps, kBytes), call.stream>>>(
      sizes, plan, TapWeightsOf(call), call.In<int32_t>(2),
      ConvArrays<Storage>{As<Storage>(ConstNumbersOf(dy)), As<Storage>(NumbersOf(dx))});
  THIMBLE_CUDA_LAUNCHED();
}

template <class Storage>
void RunConvBackward(const KernelCall& call) {
  if (call.out_shape(1).elements() == 0) return;
  const TapSizes sizes = TapSizesOf(call);
  using Element = RowElement<Storage>;
  auto plan = GradientPlanFor<Element>(sizes);
  plan.aligned = RowsAreAligned<Storage>(sizes, call.inputs[0], call.inputs[3], call.outputs[0]);
  const WeightDraw dropout(call, 4);
  const GradientArrays<Storage> arrays{.x = As<Storage>(ConstNumbersOf(call.inputs[0])),
                                       .logits = As<Storage>(ConstNumbersOf(call.inputs[1])),
                                       .dy = As<Storage>(ConstNumbersOf(call.inputs[3])),
                                       .lengths = call.In<int32_t>(2),
                                       .dx = As<Storage>(NumbersOf(call.outputs[0])),
                                       .dlogits = As<Storage>(NumbersOf(call.outputs[1]))};
  const auto sentence_kernel = SentenceGradientKernel<Storage>;
  const auto tap_kernel = TapGradientKernel<Storage>;
  static const bool permitted =
      PermitTapSharedBytes(sentence_kernel) && PermitTapSharedBytes(tap_kernel);
  static_cast<void>(permitted);
  const size_t shared_bytes = plan.SharedBytes(sizes.taps, sizeof(Element));
  if (plan.whole) {
    sentence_kernel<<<plan.Blocks(sizes), plan.Threads(), shared_bytes, call.stream>>>(
        sizes, plan, dropout, arrays);
    THIMBLE_CUDA_LAUNCHED();
    return;
  }
  tap_kernel<<<plan.Blocks(sizes), plan.Threads(), shared_bytes, call.stream>>>(
      sizes, plan, dropout, arrays, TapWeightsOf(call));
  THIMBLE_CUDA_LAUNCHED();
  if (sizes.channels > 0) LaunchInputGradient<Storage>(call, sizes);
}

// One float for each logit, unless one kernel does all.
template <class Element>
size_t GradientScratchBytes(const OpCall& call) {
  const TapSizes sizes(DynamicConvSizes(call.inputs[0], call.inputs[1], call.attributes));
  if (GradientPlanFor<Element>(sizes).whole) return 0;
  return static_cast<size_t>(call.inputs[1].elements()) * sizeof(float);
}

}  // namespace

std::string_view DynamicConvGradShortCuda::Declines(const OpCall& call) {
  const DType type = call.input_type(0);
  if (!IsShortNumber(type)) return "takes numbers of 16 bits only";
  for (const DType other :
       {call.input_type(1), call.input_type(3), call.output_type(0), call.output_type(1)}) {
    if (other != type) return "takes numbers of one type only";
  }
  return DeclinesTaps(call);
}
size_t DynamicConvGradShortCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GradientScratchBytes<F16>(call);
}
void DynamicConvGradShortCuda::Run(const KernelCall& call) {
  if (call.inputs[0].dtype == DType::kF16) return RunConvBackward<F16>(call);
  RunConvBackward<BF16>(call);
}

std::string_view DynamicConvGradCuda::Declines(const OpCall& call) { return DeclinesTaps(call); }
size_t DynamicConvGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GradientScratchBytes<float>(call);
}
void DynamicConvGradCuda::Run(const KernelCall& call) {
  const std::array types{call.inputs[0].dtype, call.inputs[1].dtype, call.inputs[3].dtype,
                         call.outputs[0].dtype, call.outputs[1].dtype};
  WithFloatsOrAny(types, [&](auto type) { RunConvBackward<decltype(type)>(call); });
}

}  // namespace thimble
