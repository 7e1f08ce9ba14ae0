// The weights of the taps of some neighbouring positions of a head, by the threads of a block:
// softmax, dropout and their gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/dropout/weight_dropout.cuh"
#include "thimble/ops/dynamic_conv/head_rows.cuh"

namespace thimble {

// A thread has groups of neighbouring taps of a row; the last group may be larger than what is left
// of the row. Arrays in shared memory have a float for each, (rows, TapPitch), so that a group is
// loaded at once.
constexpr int kTapGroup = 4;
__host__ __device__ constexpr int TapGroups(int taps) { return (taps + kTapGroup - 1) / kTapGroup; }
__host__ __device__ constexpr int TapPitch(int taps) { return TapGroups(taps) * kTapGroup; }
// So many taps are a group for each lane of a warp.
constexpr int kMostTapsAtOnce = kWarpLanes * kTapGroup;

using GroupOfTaps = float[kTapGroup];
// A mark of a probability, which is not negative otherwise: its sign.
constexpr unsigned kDropped = 0x80000000U;

__device__ inline void LoadTapGroup(const float* from, GroupOfTaps& group) {
  const float4 four = LoadFour(from);
  group[0] = four.x;
  group[1] = four.y;
  group[2] = four.z;
  group[3] = four.w;
}

// A thread's part of a row: groups `lane`, `lane` + `lanes`, ...
struct TapLane {
  int row, lane, lanes;
  bool exists;  // whether there is such a row

  // Over the threads of the row, as a fixed tree. All lanes of a warp call them.
  __device__ float Sum(float mine) const {
#pragma unroll
    for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFU, mine, distance);
      if (distance < lanes) mine += other;
    }
    return mine;
  }
  // NaN is passed over unless all are NaN.
  __device__ float Max(float mine) const {
#pragma unroll
    for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFU, mine, distance);
      if (distance < lanes) mine = fmaxf(mine, other);
    }
    return mine;
  }
};

// Calls visit(part) for the parts of rows that a thread has, in each call of this the same ones;
// all lanes of a warp do so together. A row is shared by a power of two of threads, which depends
// on the taps alone.
template <class Visit>
__device__ void ForEachTapLane(int rows, int taps, const Visit& visit) {
  constexpr int kWarpBits = 5;
  static_assert(kWarpLanes == 1 << kWarpBits);
  // As many as there are groups, at most a warp.
  const int bits = min(kWarpBits, 32 - __clz(TapGroups(taps) - 1));
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int warps = static_cast<int>(blockDim.x) / kWarpLanes;
  const int rows_of_warp = kWarpLanes >> bits;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x) / kWarpLanes * rows_of_warp; first < rows;
       first += warps * rows_of_warp) {
    const int row = first + (lane >> bits);
    visit(TapLane{row, lane & ((1 << bits) - 1), 1 << bits, row < rows});
  }
}

// Rows of taps: those of a head at some neighbouring positions.
struct TapRows {
  int rows;
  int stride;            // in logits, in memory as in their sample
  uint64_t first_drawn;  // the index of the first weight within its sample
};

// Which weights dropout keeps: bits in shared memory, a byte for each draw that a group of the row
// may have a part in. Rows begin anywhere in a draw.
__host__ __device__ constexpr int DrawsOfRow(int taps) { return TapGroups(taps) + 1; }
__host__ __device__ constexpr int FloatsForKept(int taps) { return (DrawsOfRow(taps) + 3) / 4; }

// WeightDraw for a sentence. Loads what it needs at once: nothing of it depends on the lengths.
struct SentenceDraw {
  const DropoutDraw& draw;
  bool drops;
  uint32_t epoch = 0;
  uint32_t sample = 0;
  uint8_t* kept;  // (rows, DrawsOfRow)

  __device__ SentenceDraw(const WeightDraw& dropout, int b, float* place)
      : draw(dropout.draw),
        drops(dropout.samples != nullptr),
        kept(reinterpret_cast<uint8_t*>(place)) {
    if (!drops) return;
    epoch = static_cast<uint32_t>(*dropout.epoch);
    sample = static_cast<uint32_t>(dropout.samples[b]);
  }
  __device__ float Scale() const { return drops ? draw.scale : 1.0F; }
  // Draws for some rows. All threads of the block call it.
  __device__ void Draw(const TapRows& all, int taps) const {
    if (!drops) return;
    const auto draws = static_cast<unsigned>(DrawsOfRow(taps));
    const unsigned count = static_cast<unsigned>(all.rows) * draws;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
      const unsigned row = i / draws;
      const uint32_t index = static_cast<uint32_t>(all.first_drawn / kTapGroup) +
                             First(all, static_cast<int>(row)) / kTapGroup + (i - row * draws);
      const auto words = draw.Words(epoch, sample, index);
      unsigned bits = 0;
#pragma unroll
      for (size_t w = 0; w < words.size(); ++w) bits |= (draw.Keeps(words[w]) ? 1U : 0U) << w;
      kept[i] = static_cast<uint8_t>(bits);
    }
    __syncthreads();
  }
  // A bit for each weight of a group that is kept. Requires Draw.
  __device__ unsigned Kept(const TapRows& all, int row, int taps, int tap) const {
    if (!drops) return (1U << kTapGroup) - 1;
    const uint8_t* bits = kept + row * DrawsOfRow(taps) + tap / kTapGroup;
    return (bits[0] | static_cast<unsigned>(bits[1]) << kTapGroup) >> First(all, row) % kTapGroup;
  }

 private:
  static_assert(kTapGroup == kElementsPerDraw);
  // The first weight of a row, counted from the beginning of the draw of the first row's first one.
  __device__ static unsigned First(const TapRows& all, int row) {
    return static_cast<unsigned>(all.first_drawn % kTapGroup) +
           static_cast<unsigned>(row * all.stride);
  }
};

// Calls use(row, tap, weights) for all groups of taps, the first of which is `tap`. A weight that
// is dropped is zero even if it is NaN, as the formula has it. `logits` are those of the first row.
// All threads of the block call it.
//
// `probabilities`, (rows, TapPitch), is used if there are more than kMostTapsAtOnce. If kKeeps, it
// receives those of softmax, with kDropped where the weight is dropped, and 0 beyond the last tap.
template <bool kKeeps, class Storage, class Use>
__device__ void ComputeTapWeights(const TapRows& all, InNumbers<Storage> logits, int taps,
                                  const SentenceDraw& dropout, float* probabilities,
                                  const Use& use) {
  dropout.Draw(all, taps);
  ForEachTapLane(all.rows, taps, [&](const TapLane& part) {
    // Taps and rows that do not exist are replaced by others, so that all loads are on their way at
    // once.
    const int from = min(part.row, all.rows - 1) * all.stride;
    float* of_row = probabilities + part.row * TapPitch(taps);
    float largest = -INFINITY;
    const auto load = [&](int tap, GroupOfTaps& loaded) {
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) {
        loaded[i] = LoadNumber(logits + (from + min(tap + i, taps - 1)));
      }
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) largest = fmaxf(largest, loaded[i]);
    };
    const int begin = part.lane * kTapGroup;
    const int step = part.lanes * kTapGroup;
    // The first group stays in registers.
    GroupOfTaps near;
    load(begin, near);
#pragma unroll 1
    for (int tap = begin + step; tap < taps; tap += step) {
      GroupOfTaps loaded;
      load(tap, loaded);
      if (part.exists) StorePack(loaded, of_row + tap);
    }
    largest = part.Max(largest);
    float sum = 0;
    const auto exponentiate = [&](int tap, GroupOfTaps& numbers) {
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) {
        numbers[i] = expf(numbers[i] - largest);
        if (tap + i < taps) sum += numbers[i];
      }
    };
    exponentiate(begin, near);
#pragma unroll 1
    for (int tap = begin + step; tap < taps && part.exists; tap += step) {
      GroupOfTaps numbers;
      LoadTapGroup(of_row + tap, numbers);
      exponentiate(tap, numbers);
      StorePack(numbers, of_row + tap);
    }
    const float inverse = 1 / part.Sum(sum);
    if (!part.exists) return;
    const float scale = dropout.Scale();
#pragma unroll 1
    for (int tap = begin; tap < taps; tap += step) {
      if (tap != begin) LoadTapGroup(of_row + tap, near);
      const unsigned kept = dropout.Kept(all, part.row, taps, tap);
      GroupOfTaps weights;
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) {
        const bool is_kept = (kept >> i & 1) != 0;
        const float probability = tap + i < taps ? near[i] * inverse : 0.0F;
        weights[i] = is_kept ? probability * scale : 0.0F;
        near[i] =
            __uint_as_float((__float_as_uint(probability) & ~kDropped) | (is_kept ? 0U : kDropped));
      }
      if (kKeeps) StorePack(near, of_row + tap);
      use(part.row, tap, weights);
    }
  });
}

// Stores the gradients of the logits, from what ComputeTapWeights keeps and the derivatives by the
// weights, both (rows, TapPitch). reaches(row, k) says whether tap k of a row exists and reads a
// position of the sentence; otherwise its derivative is 0, whatever is there.
template <class Storage, class Reaches>
__device__ void StoreLogitGradients(OutNumbers<Storage> dlogits, int stride, int rows, int taps,
                                    float scale, const float* probabilities, float* derivatives,
                                    const Reaches& reaches) {
  ForEachTapLane(rows, taps, [&](const TapLane& part) {
    const int at = part.row * TapPitch(taps);
    // Calls visit(tap, probabilities, derivatives) for the groups.
    const auto for_each = [&](const auto& visit) {
#pragma unroll 1
      for (int tap = part.lane * kTapGroup; tap < taps && part.exists;
           tap += part.lanes * kTapGroup) {
        GroupOfTaps p;
        GroupOfTaps d;
        LoadTapGroup(probabilities + at + tap, p);
        LoadTapGroup(derivatives + at + tap, d);
        visit(tap, p, d);
      }
    };
    float mean = 0;
    for_each([&](int tap, const GroupOfTaps& p, GroupOfTaps& d) {
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) {
        const bool counts = (__float_as_uint(p[i]) & kDropped) == 0 && reaches(part.row, tap + i);
        d[i] = counts ? d[i] * scale : 0.0F;
        mean = fmaf(fabsf(p[i]), d[i], mean);
      }
      StorePack(d, derivatives + at + tap);
    });
    mean = part.Sum(mean);
    // The mean is subtracted twice: see softmax_formula.h.
    float error = 0;
    for_each([&](int, const GroupOfTaps& p, const GroupOfTaps& d) {
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) error = fmaf(fabsf(p[i]), d[i] - mean, error);
    });
    error = part.Sum(error);
    const int to = part.row * stride;
    for_each([&](int tap, const GroupOfTaps& p, const GroupOfTaps& d) {
#pragma unroll
      for (int i = 0; i < kTapGroup; ++i) {
        if (tap + i >= taps) continue;
        StoreNumber(fabsf(p[i]) * (d[i] - mean - error), dlogits + (to + tap + i));
      }
    });
  });
}

}  // namespace thimble
