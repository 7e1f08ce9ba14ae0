// Copies by the copy engine of sm_90 (TMA): one thread asks for a box of an array that a
// CUtensorMap describes (tensor_map.h); the engine writes it to shared memory, zeros where the
// array ends, and counts the bytes at a barrier.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/handover.cuh"
#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {

// Loads the description of an array ahead of the first copy.
__device__ inline void PrefetchMap(const CUtensorMap& map) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

// Arrives, and lets the phase also wait for so many bytes of copies.
__device__ inline void ArriveAndExpect(Handover& handover, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      "  .reg .b64 ignored;\n"
      "  mbarrier.arrive.expect_tx.shared::cta.b64 ignored, [%0], %1;\n"
      "}" ::"r"(SharedAddress(&handover)),
      "r"(bytes)
      : "memory");
#endif
}

// Makes barriers that were just made visible to the copy engine. Before __syncthreads.
__device__ inline void ShowHandoversToCopies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// A box of an array with two dimensions; coordinates are those of its first element, the innermost
// dimension first.
__device__ inline void CopyBox(const CUtensorMap& map, int x, int y, uint32_t to, Handover& full) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(SharedAddress(&full))
      : "memory");
#endif
}
// The same for several blocks of a cluster, a bit each: every one gets the box at this place of its
// shared memory, and its bytes are counted there.
__device__ inline void CopyBoxToBlocks(const CUtensorMap& map, int x, int y, uint32_t to,
                                       Handover& full, uint32_t blocks) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(SharedAddress(&full)), "h"(static_cast<uint16_t>(blocks))
      : "memory");
#endif
}
// One block, three dimensions.
__device__ inline void CopyBox(const CUtensorMap& map, int x, int y, int z, uint32_t to,
                               Handover& full) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(SharedAddress(&full))
      : "memory");
#endif
}

// The position of a window's first pixel, which may be outside the image.
struct WindowPlace {
  int image, row, column;
};

// Some channels of neighbouring windows' pixels at one tap: the tap is `down` rows below and
// `right` columns to the right of a window's first pixel.
__device__ inline void CopyWindowPixels(const CUtensorMap& map, const WindowPlace& first,
                                        int channel, int down, int right, uint32_t to,
                                        Handover& full) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
      "l"(&map), "r"(channel), "r"(first.column), "r"(first.row), "r"(first.image),
      "r"(SharedAddress(&full)), "h"(static_cast<uint16_t>(right)), "h"(static_cast<uint16_t>(down))
      : "memory");
#endif
}

}  // namespace thimble
