// How a thread of a GPU reads and writes its elements of a matrix of rows and channels.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <type_traits>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/batch_norm/channel_blocks.h"

namespace thimble {

// Blocks of a grid: (groups of channels, chunks of a part, parts).
inline dim3 GridOf(const ChannelBlocks& blocks) {
  return {static_cast<unsigned>(blocks.groups), static_cast<unsigned>(blocks.chunks),
          static_cast<unsigned>(blocks.parts)};
}

inline __device__ int ThisPart() { return static_cast<int>(blockIdx.z); }

// The index in arrays (parts, C) of a channel's statistic for this block's part.
inline __device__ int64_t StatisticOfThisPart(const ChannelBlocks& blocks, int64_t channel) {
  return ThisPart() * blocks.channels + channel;
}

inline __device__ ThreadRows RowsOfThisThread(const ChannelBlocks& blocks) {
  return RowsOfThread(blocks, ThisPart(), static_cast<int>(blockIdx.x),
                      static_cast<int>(blockIdx.y), static_cast<int>(threadIdx.x));
}

// Several rows of a thread, loaded before the first of them is processed. Kernels read the first
// batch before they prepare their constants, which takes about as long.
template <class Storage, int kVector, int kRows>
struct RowBatch {
  Pack<Storage, kVector> at[kRows];

  // Reads the thread's rows from `row` on, as many as there are.
  template <class Rows, class Index>
  __device__ void Read(const Rows& rows, Index row, InNumbers<Storage> from) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k < rows.count) at[k] = LoadPack<kVector>(from + rows.Element(row + k));
    }
  }
};

// The number of rows that take as many registers as `rows` of floats.
template <class Storage>
constexpr int RowsAtOnce(int rows) {
  return std::is_same_v<Storage, F16> || std::is_same_v<Storage, BF16> ? 2 * rows : rows;
}

// Calls body(storage, vector, relu) for tensors of these types; `vector` is a compile-time
// constant. So is `relu` for floats. Otherwise it is a bool, which halves the number of kernels:
// the test is part of the comparison with zero.
template <class Body>
void WithConstants(std::span<const DType> types, int vector, bool relu, const Body& body) {
  const auto with_relu = [&](auto storage, auto constant) {
    if constexpr (std::is_same_v<decltype(storage), float>) {
      relu ? body(storage, constant, std::true_type()) : body(storage, constant, std::false_type());
    } else {
      body(storage, constant, relu);
    }
  };
  if (vector == 4) {
    WithCommonStorage(types,
                      [&](auto storage) { with_relu(storage, std::integral_constant<int, 4>()); });
  } else {
    WithFloatsOrAny(types,
                    [&](auto storage) { with_relu(storage, std::integral_constant<int, 1>()); });
  }
}

}  // namespace thimble
