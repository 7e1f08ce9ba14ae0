// A block has a head whose queries and sources fit in shared memory, and all sums of its gradients.
// Longer sentences are divided among the blocks of two kernels; as the second one reads q and dy,
// dq waits in scratch. Both ways give the same bits, so that these do not depend on padding.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/attention/attention.h"
#include "thimble/ops/attention/head_gradients.cuh"
#include "thimble/ops/attention/head_rows.cuh"
#include "thimble/ops/attention/wide_heads.h"
#include "thimble/ops/dropout/weight_dropout.cuh"

namespace thimble {
namespace heads {
namespace {

template <class Storage>
struct AttentionGradArrays {
  InNumbers<Storage> q, k, v;
  const int32_t* lengths;
  InNumbers<Storage> dy;           // (B, T, C)
  OutNumbers<Storage> dq, dk, dv;  // may be q or dy, k, v
};

// Rows of a block in shared memory for so many of a head.
template <Tiles kTiles>
__host__ __device__ int TileRowsOf(int rows) {
  return kTiles == Tiles::kOne ? kTileRows : RoundUpTo(kTileRows, max(rows, 1));
}

// A block for each head, whose queries and sources are in shared memory.
template <class Storage, Tiles kTiles>
__global__ void __launch_bounds__(kThreadLimit<kTiles>, LeastBlocks<kTiles, Storage>())
    HeadGradientKernel(HeadSizes sizes, HeadTiling tiling, WeightDraw dropout,
                       AttentionGradArrays<Storage> arrays) {
  extern __shared__ float shared[];
  if constexpr (kTiles == Tiles::kOne) tiling.whole = true;
  WaitForKernelsBefore();
  const HeadPlace place;
  const HeadWarp warp;
  const int length = arrays.lengths[place.b];
  const int64_t query = sizes.Query(place.b, 0, place.h);
  const int64_t source = sizes.Source(place.b, 0, place.h);
  const int query_rows = TileRowsOf<kTiles>(sizes.queries);
  const int source_rows = TileRowsOf<kTiles>(sizes.sources);
  auto* q = reinterpret_cast<SharedNumber<Storage>*>(shared);
  auto* dy = q + query_rows * tiling.stride;
  auto* k = dy + query_rows * tiling.stride;
  auto* v = k + source_rows * tiling.stride;
  const SoftmaxArrays softmax{reinterpret_cast<float*>(v + source_rows * tiling.stride),
                              query_rows};
  LoadRows<Storage>(sizes, tiling, {arrays.q, arrays.dy}, query, query_rows, sizes.queries, q);
  const bool has_sums = sizes.IsLength(length) && length > 0 && sizes.queries > 0;
  const float fill = sizes.IsLength(length) ? 0.0F : nanf("");
  const int filled = has_sums ? length : 0;
  const int64_t padding = source + int64_t{filled} * sizes.channels;
  FillRows<Storage>(sizes, fill, sizes.sources - filled, arrays.dk + padding);
  FillRows<Storage>(sizes, fill, sizes.sources - filled, arrays.dv + padding);
  if (!has_sums) {
    WaitForCopies();
    __syncthreads();  // dq may be q or dy
    return FillRows<Storage>(sizes, fill, sizes.queries, arrays.dq + query);
  }
  LoadRows<Storage>(sizes, tiling, {arrays.k, arrays.v}, source, source_rows, length, k);
  auto* kept = reinterpret_cast<uint8_t*>(softmax.numbers + SoftmaxArrays::kArrays * query_rows);
  auto* waiting = reinterpret_cast<float4*>(kept + query_rows * source_rows / 8);
  const HeadContext context{sizes,
                            tiling,
                            dropout.samples != nullptr,
                            {kept, source_rows / 8, dropout.draw.scale},
                            length,
                            waiting + WarpOfBlock() * kTileRows / 8 * kWarpLanes};
  context.kept.Draw(sizes, dropout, place, 0, sizes.queries, 0, length);
  softmax.Fill(sizes.queries, query_rows - sizes.queries);
  WaitForCopies();
  __syncthreads();
  const int strip = warp.row * tiling.stride;
  if (warp.row < sizes.queries) {
    SoftmaxOfQueries of_queries;
    PartNumbers dq;
    SumQueryGradients<Storage, kTiles>(
        context, warp, sizes.queries - warp.row, q + strip, dy + strip,
        [&](int i) -> HeadTile<Storage> {
          const int row = i * kTileRows;
          return {k + row * tiling.stride, v + row * tiling.stride, row};
        },
        of_queries, dq);
    if (warp.channel == 0) of_queries.Store(softmax, warp.row, sizes.queries - warp.row);
    StorePart<Storage>(sizes, tiling, dq, sizes.queries - warp.row, warp.channel,
                       arrays.dq + (query + int64_t{warp.row} * sizes.channels));
  }
  __syncthreads();
  if (warp.row >= length) return;
  SumSourceGradients<Storage, kTiles>(
      context, warp, length - warp.row, k + strip, v + strip,
      [&](int i) -> HeadTile<Storage> {
        const int row = i * kTileRows;
        return {q + row * tiling.stride, dy + row * tiling.stride, row};
      },
      softmax,
      [&](const PartNumbers& sums, bool is_dk) {
        StorePart<Storage>(
            sizes, tiling, sums, length - warp.row, warp.channel,
            (is_dk ? arrays.dk : arrays.dv) + (source + int64_t{warp.row} * sizes.channels));
      });
}

// ---- Longer sentences

// Stores dq as floats.
template <class Storage>
__global__ void __launch_bounds__(kThreadLimit<Tiles::kAny>, LeastBlocks<Tiles::kAny, Storage>())
    QueryGradientKernel(HeadSizes sizes, HeadTiling tiling, WeightDraw dropout,
                        AttentionGradArrays<Storage> arrays, float* dq, SoftmaxArrays softmax) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const HeadBlock block(tiling, sizes.queries);
  const auto& [b, h] = block.place;
  const HeadWarp warp;
  const int length = arrays.lengths[b];
  const int64_t first = sizes.Query(b, block.first, h);
  const int64_t known = sizes.Kept(b, h, block.first);
  if (!sizes.IsLength(length) || length == 0) {
    softmax.Fill(known, block.count);
    return FillRows<float>(sizes, length == 0 ? 0.0F : nanf(""), block.count, dq + first);
  }
  auto* q = reinterpret_cast<SharedNumber<Storage>*>(shared);
  auto* dy = q + tiling.rows() * tiling.stride;
  auto* sources = dy + tiling.rows() * tiling.stride;
  LoadRows<Storage>(sizes, tiling, {arrays.q, arrays.dy}, first, tiling.rows(), block.count, q);
  RowWindow<Storage> window{{arrays.k, arrays.v}, sizes.Source(b, 0, h), length, sources};
  const HeadContext context{
      sizes,
      tiling,
      dropout.samples != nullptr,
      {reinterpret_cast<uint8_t*>(sources + 2 * tiling.window_rows * tiling.stride),
       tiling.window_rows / 8, dropout.draw.scale},
      length};
  const int strip = warp.row * tiling.stride;
  const int count = block.count - warp.row;
  SoftmaxOfQueries of_queries;
  PartNumbers sums;
  SumQueryGradients<Storage, Tiles::kAny>(
      context, warp, count, q + strip, dy + strip,
      [&](int i) {
        return window.Tile(sizes, tiling, i, [&](int begin, int rows) {
          context.kept.Draw(sizes, dropout, block.place, block.first, block.count, begin, rows);
        });
      },
      of_queries, sums);
  if (warp.channel == 0) of_queries.Store(softmax, known + warp.row, count);
  StorePart<float>(sizes, tiling, sums, count, warp.channel,
                   dq + (first + int64_t{warp.row} * sizes.channels));
}

template <class Storage>
__global__ void __launch_bounds__(kThreadLimit<Tiles::kAny>, LeastBlocks<Tiles::kAny, Storage>())
    SourceGradientKernel(HeadSizes sizes, HeadTiling tiling, WeightDraw dropout,
                         AttentionGradArrays<Storage> arrays, SoftmaxArrays softmax) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const HeadBlock block(tiling, sizes.sources);
  const auto& [b, h] = block.place;
  const HeadWarp warp;
  const int length = arrays.lengths[b];
  const int64_t first = sizes.Source(b, block.first, h);
  const bool has_sums = sizes.IsLength(length) && block.first < length && sizes.queries > 0;
  const int valid = has_sums ? min(block.count, length - block.first) : 0;
  const float fill = sizes.IsLength(length) ? 0.0F : nanf("");
  const int64_t padding = first + int64_t{valid} * sizes.channels;
  FillRows<Storage>(sizes, fill, block.count - valid, arrays.dk + padding);
  FillRows<Storage>(sizes, fill, block.count - valid, arrays.dv + padding);
  if (!has_sums) return;
  auto* k = reinterpret_cast<SharedNumber<Storage>*>(shared);
  auto* v = k + tiling.rows() * tiling.stride;
  auto* queries = v + tiling.rows() * tiling.stride;
  const SoftmaxArrays in_window{
      reinterpret_cast<float*>(queries + 2 * tiling.window_rows * tiling.stride),
      tiling.window_rows};
  LoadRows<Storage>(sizes, tiling, {arrays.k, arrays.v}, first, tiling.rows(), valid, k);
  RowWindow<Storage> window{{arrays.q, arrays.dy}, sizes.Query(b, 0, h), sizes.queries, queries};
  const HeadContext context{
      sizes,
      tiling,
      dropout.samples != nullptr,
      {reinterpret_cast<uint8_t*>(in_window.numbers + SoftmaxArrays::kArrays * tiling.window_rows),
       tiling.rows() / 8, dropout.draw.scale},
      length};
  const int strip = warp.row * tiling.stride;
  SumSourceGradients<Storage, Tiles::kAny>(
      context, warp, valid - warp.row, k + strip, v + strip,
      [&](int i) {
        return window.Tile(sizes, tiling, i, [&](int begin, int rows) {
          context.kept.Draw(sizes, dropout, block.place, begin, rows, block.first, valid);
          softmax.CopyTo(in_window, sizes.Kept(b, h, begin), rows, tiling.window_rows);
        });
      },
      in_window,
      [&](const PartNumbers& sums, bool is_dk) {
        StorePart<Storage>(
            sizes, tiling, sums, valid - warp.row, warp.channel,
            (is_dk ? arrays.dk : arrays.dv) + (first + int64_t{warp.row} * sizes.channels));
      });
}

struct StoreQueryGradient {
  const float* from;
  OutNumbers<AnyNumber> to;
  __device__ void operator()(int64_t i) const { StoreNumber(from[i], to + i); }
};

// ---- Launches

bool AreOneShortType(const std::array<DType, 7>& types) {
  return types[0] != DType::kF32 &&
         std::all_of(types.begin(), types.end(), [&](DType type) { return type == types[0]; });
}

// For a block that has a whole head.
HeadTiling TilingOfHead(const HeadSizes& sizes, int number_bytes, bool aligned) {
  const int rows = std::max(sizes.queries, sizes.sources);
  return HeadTiling(sizes, number_bytes, aligned, rows, 0);
}
size_t SharedBytesOfHead(const HeadSizes& sizes, const HeadTiling& tiling) {
  const auto queries = static_cast<size_t>(TileRowsOf<Tiles::kAny>(sizes.queries));
  const auto sources = static_cast<size_t>(TileRowsOf<Tiles::kAny>(sizes.sources));
  return 2 * (queries + sources) * tiling.row_bytes() +
         SoftmaxArrays::kArrays * sizeof(float) * queries + queries * sources / 8 +
         (tiling.HasOneTile(sizes) ? tiling.Warps() * sizeof(TileNumbers) * kWarpLanes : 0);
}
bool FitsInBlock(const HeadSizes& sizes, int number_bytes) {
  const HeadTiling tiling = TilingOfHead(sizes, number_bytes, false);
  return tiling.strips <= tiling.MostStrips() && SharedBytesOfHead(sizes, tiling) <= kSharedLimit;
}

template <class Storage>
struct GradientLauncher {
  explicit GradientLauncher(const KernelCall& the_call)
      : call(the_call),
        sizes(the_call),
        dropout(the_call, 5),
        arrays{In(0), In(1), In(2), the_call.In<int32_t>(3), In(4), Out(0), Out(1), Out(2)},
        aligned(true) {
    for (const size_t input : {0, 1, 2, 4}) aligned &= AllAligned16(call.inputs[input].data);
    for (const TensorView& output : call.outputs) aligned &= AllAligned16(output.data);
  }

  InNumbers<Storage> In(size_t input) const {
    return As<Storage>(ConstNumbersOf(call.inputs[input]));
  }
  OutNumbers<Storage> Out(size_t output) const {
    return As<Storage>(NumbersOf(call.outputs[output]));
  }

  void WholeHeads() const {
    static const bool allowed = AllowShared(HeadGradientKernel<Storage, Tiles::kOne>) &&
                                AllowShared(HeadGradientKernel<Storage, Tiles::kAny>);
    static_cast<void>(allowed);
    const HeadTiling tiling = TilingOfHead(sizes, kNumberBytes, aligned);
    const auto kernel = tiling.HasOneTile(sizes) ? HeadGradientKernel<Storage, Tiles::kOne>
                                                 : HeadGradientKernel<Storage, Tiles::kAny>;
    kernel<<<tiling.Blocks(sizes, 1), tiling.Threads(), SharedBytesOfHead(sizes, tiling),
             call.stream>>>(sizes, tiling, dropout, arrays);
    THIMBLE_CUDA_LAUNCHED();
  }
  void DividedHeads() const {
    static const bool allowed =
        AllowShared(QueryGradientKernel<Storage>) && AllowShared(SourceGradientKernel<Storage>);
    static_cast<void>(allowed);
    auto* dq = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
    const int64_t elements = call.out_shape(0).elements();
    const SoftmaxArrays softmax{dq + elements, sizes.query_rows()};
    if (elements > 0) {
      const HeadTiling tiling = DividedTiling(sizes.queries, sizes.sources);
      QueryGradientKernel<Storage>
          <<<tiling.Blocks(sizes, sizes.queries), tiling.Threads(), tiling.SharedBytes(2),
             call.stream>>>(sizes, tiling, dropout, arrays, dq, softmax);
      THIMBLE_CUDA_LAUNCHED();
    }
    if (call.out_shape(1).elements() > 0) {
      const HeadTiling tiling = DividedTiling(sizes.sources, sizes.queries);
      SourceGradientKernel<Storage>
          <<<tiling.Blocks(sizes, sizes.sources), tiling.Threads(), tiling.SharedBytes(2),
             call.stream>>>(sizes, tiling, dropout, arrays, softmax);
      THIMBLE_CUDA_LAUNCHED();
    }
    LaunchElements(call.stream, elements, StoreQueryGradient{dq, NumbersOf(call.outputs[0])});
  }
  HeadTiling DividedTiling(int rows, int other_rows) const {
    HeadTiling tiling(sizes, kNumberBytes, aligned, rows, other_rows);
    tiling.Shrink(2);
    return tiling;
  }

  static constexpr int kNumberBytes = sizeof(SharedNumber<Storage>);

  const KernelCall& call;
  HeadSizes sizes;
  WeightDraw dropout;
  AttentionGradArrays<Storage> arrays;
  bool aligned;
};

}  // namespace
}  // namespace heads

std::string_view AttentionGradCuda::Declines(const OpCall& call) { return WideHeadsDecline(call); }

size_t AttentionGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const AttentionSizes shapes(call.inputs[0], call.inputs[1], call.attributes);
  const heads::HeadSizes sizes(shapes);
  const int64_t elements = call.inputs[0].elements();
  const std::array types{call.input_type(0), call.input_type(1),  call.input_type(2),
                         call.input_type(4), call.output_type(0), call.output_type(1),
                         call.output_type(2)};
  const bool is_wide = NeedsWideHeads(shapes);
  if (elements == 0 ||
      (!is_wide && heads::FitsInBlock(sizes, heads::AreOneShortType(types) ? 2 : 4))) {
    return 0;
  }
  return static_cast<size_t>(heads::SoftmaxArrays::kArrays * sizes.query_rows() + elements) *
         sizeof(float);
}

void AttentionGradCuda::Run(const KernelCall& call) {
  const AttentionSizes shapes(call.in_shape(0), call.in_shape(1), call.attributes);
  if (shapes.batch == 0 || shapes.channels == 0) return;
  if (NeedsWideHeads(shapes)) return RunWideAttentionGrad(call);
  const heads::HeadSizes sizes(shapes);
  const std::array types{call.inputs[0].dtype, call.inputs[1].dtype,  call.inputs[2].dtype,
                         call.inputs[4].dtype, call.outputs[0].dtype, call.outputs[1].dtype,
                         call.outputs[2].dtype};
  WithCommonStorage(types, [&](auto type) {
    const heads::GradientLauncher<decltype(type)> launcher(call);
    const bool fits = heads::FitsInBlock(sizes, launcher.kNumberBytes);
    return fits ? launcher.WholeHeads() : launcher.DividedHeads();
  });
}

}  // namespace thimble
