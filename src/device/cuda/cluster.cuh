// Clusters of blocks that read each other's shared memory: sm_90. On older GPUs every block is a
// cluster of its own.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {

// The most blocks that a cluster can have on every GPU with clusters.
inline constexpr int kMaxClusterBlocks = 8;

// A barrier for all threads of a cluster; what they wrote to shared memory before is then visible
// to all. A block must not end while others still read its shared memory.
__device__ inline void SyncCluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#else
  __syncthreads();
#endif
}

// The same in two halves, between which threads may do other work.
__device__ inline void ArriveInCluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void WaitForCluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Waits until all threads of a cluster are here, so that none ends while others read its shared
// memory. What they wrote to memory before is not waited for: that takes a microsecond.
__device__ inline void SyncBeforeEnd() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;\n"
      "barrier.cluster.wait.aligned;" ::
          : "memory");
#endif
}

// Loads what the block of this rank in the cluster has at the same place of its shared memory.
__device__ inline float4 LoadFromClusterBlock(const float* place, int rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  float4 four;
  asm volatile(
      "{\n"
      "  .reg .u32 address;\n"
      "  mapa.shared::cluster.u32 address, %4, %5;\n"
      "  ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [address];\n"
      "}"
      : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
      : "r"(SharedAddress(place)), "r"(rank)
      : "memory");
  return four;
#else
  static_cast<void>(rank);
  return *reinterpret_cast<const float4*>(place);
#endif
}

__device__ inline double LoadFromClusterBlock(const double* place, int rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  double number;
  asm volatile(
      "{\n"
      "  .reg .u32 address;\n"
      "  mapa.shared::cluster.u32 address, %1, %2;\n"
      "  ld.shared::cluster.f64 %0, [address];\n"
      "}"
      : "=d"(number)
      : "r"(SharedAddress(place)), "r"(rank)
      : "memory");
  return number;
#else
  static_cast<void>(rank);
  return *place;
#endif
}

// Whether the GPU has clusters.
inline bool HasClusters() { return IsHopperOrLater(); }

// Launches blocks in clusters of this many neighbours along x. Requires clusters, or 1.
template <class... Parameters>
void LaunchClusters(cudaStream_t stream, dim3 blocks, dim3 threads, size_t shared_bytes,
                    int cluster_blocks, void (*kernel)(Parameters...),
                    const Parameters&... arguments) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(cluster_blocks);
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = cluster_blocks > 1 ? 1 : 0;
  THIMBLE_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace thimble
