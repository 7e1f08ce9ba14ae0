// A convolution with the weights of the taps as a band matrix: a row for each result, with a weight
// for each of the K positions around it. A thread has four results of four channels; each row that
// it reads serves them all.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/dynamic_conv/head_rows.cuh"

namespace thimble {

constexpr int kBandResults = 4;
constexpr int kBandChannels = 4;

// The weights of neighbouring results are stored by the row that they multiply: row i of four
// results has the weight of tap i - p of result p, so that they are loaded at once. Those of taps
// that do not exist are never read.
__host__ __device__ constexpr int BandRows(int taps) { return taps + kBandResults - 1; }
__host__ __device__ constexpr int BandFloats(int results, int taps) {
  return results * BandRows(taps);
}
// The place of the weight of a tap, counted from the first position that the result reads.
__device__ inline int BandPlace(int taps, int result, int tap) {
  const int p = static_cast<int>(static_cast<unsigned>(result) % kBandResults);
  return (result - p) * BandRows(taps) + (tap + p) * kBandResults + p;
}
// From the place of a tap to that of the next one of the same result.
constexpr int kBandTapStep = kBandResults;

// sums[p][c] += the weight of result p * channel c of row i, for rows [begin, end) in order: one
// chain of multiply-adds for each. Weights that do not exist multiply nothing, not even by zero,
// because the row may hold NaN.
template <class Element>
__device__ void SumBandRows(const Element* rows, int pitch, const float* band, int taps, int begin,
                            int end, float (&sums)[kBandResults][kBandChannels]) {
  const auto add = [&](int i, auto all_exist) {
    const float4 row = LoadFour(rows + i * pitch);
    const float4 loaded = LoadFour(band + i * kBandResults);
    const float weights[] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
    for (int p = 0; p < kBandResults; ++p) {
      if (!all_exist.value && (i < p || i - p >= taps)) continue;
      sums[p][0] = fmaf(weights[p], row.x, sums[p][0]);
      sums[p][1] = fmaf(weights[p], row.y, sums[p][1]);
      sums[p][2] = fmaf(weights[p], row.z, sums[p][2]);
      sums[p][3] = fmaf(weights[p], row.w, sums[p][3]);
    }
  };
  int i = begin;
#pragma unroll 1
  for (; i < min(end, kBandResults - 1); ++i) add(i, std::false_type());
#pragma unroll 2
  for (; i < min(end, taps); ++i) add(i, std::true_type());
#pragma unroll 1
  for (; i < end; ++i) add(i, std::false_type());
}

// Results whose rows and weights are in shared memory.
template <class Storage>
struct BandTile {
  int first, count;  // positions of results
  const RowElement<Storage>* rows;
  int first_row;  // the position of the first row
  int before;     // the first position that a result reads is so far before its own
  const float* band;
};

// Stores the results of a tile at all positions of the sentence, padded ones included. `to` is the
// address of the first channel of a chunk at the tile's first position.
template <class Storage>
__device__ void StoreBandResults(const TapSizes& sizes, const SentenceHead& head,
                                 const ChannelChunk& chunk, const BandTile<Storage>& tile,
                                 bool aligned, OutNumbers<Storage> to) {
  const int pitch = RowPitch<RowElement<Storage>>(chunk.width);
  const ThreadGrid threads(chunk.width / kBandChannels);
  const int channel = threads.column * kBandChannels;
  if (channel >= chunk.existing) return;
#pragma unroll 1
  for (int result = threads.row * kBandResults; result < tile.count;
       result += threads.rows * kBandResults) {
    const int position = tile.first + result;
    float sums[kBandResults][kBandChannels] = {};
    if (position < head.length) {
      const int first = position - tile.before;
      SumBandRows(tile.rows + ((first - tile.first_row) * pitch + channel), pitch,
                  tile.band + result * BandRows(sizes.taps), sizes.taps, max(0, -first),
                  min(BandRows(sizes.taps), head.length - first), sums);
    }
#pragma unroll
    for (int p = 0; p < kBandResults; ++p) {
      const int t = position + p;
      if (result + p >= tile.count) break;
#pragma unroll
      for (float& sum : sums[p]) {
        if (t >= head.length) sum = head.Padding();
      }
      const auto place = to + ((result + p) * sizes.channels + channel);
      if (aligned) {
        StorePack(sums[p], place);
      } else {
#pragma unroll
        for (int c = 0; c < kBandChannels; ++c) {
          if (channel + c < chunk.existing) StoreNumber(sums[p][c], place + c);
        }
      }
    }
  }
}

}  // namespace thimble
