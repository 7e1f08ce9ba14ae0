// Rows of moderate size in the registers of a warp: a lane has groups of neighbouring numbers, as
// they are stored or as floats. Rows begin at multiples of 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"

namespace thimble {

// Numbers of a lane's group, 16 bytes if they have 16 bits. The channels of a row are a multiple.
inline constexpr int kRowGroup = 8;

// The first channel of one of the lane's groups.
__device__ inline int FirstOfGroup(int group) {
  return (group * kWarpLanes + static_cast<int>(threadIdx.x) % kWarpLanes) * kRowGroup;
}

// A lane's part of a row as it is stored; zero beyond its end.
template <class Storage, int kGroups>
struct StoredRow {
  Pack<Storage, kRowGroup> at[kGroups];

  __device__ void Load(const InNumbers<Storage>& row, int channels) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      at[i] = {};
      if (FirstOfGroup(i) < channels) at[i] = LoadPack<kRowGroup>(row + FirstOfGroup(i));
    }
  }
};

// A lane's part of a row, as floats.
template <int kGroups>
struct KeptRow {
  float at[kGroups][kRowGroup];

  // Calls visit(number, i, k) for each number of the lane, at[i][k].
  template <class Visit>
  __device__ void ForEach(int channels, const Visit& visit) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (FirstOfGroup(i) >= channels) continue;
#pragma unroll
      for (int k = 0; k < kRowGroup; ++k) visit(at[i][k], i, k);
    }
  }
  template <class Storage>
  __device__ void Decode(const StoredRow<Storage, kGroups>& row) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
#pragma unroll
      for (int k = 0; k < kRowGroup; ++k) at[i][k] = row.at[i][k];
    }
  }
  template <class Storage>
  __device__ void Load(const InNumbers<Storage>& row, int channels) {
    StoredRow<Storage, kGroups> stored;
    stored.Load(row, channels);
    Decode(stored);
  }
  template <class Pointer>
  __device__ void Store(const Pointer& row, int channels) const {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (FirstOfGroup(i) < channels) StorePack(at[i], row + FirstOfGroup(i));
    }
  }
};

}  // namespace thimble
