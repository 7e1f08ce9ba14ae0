// Products on the tensor cores of a warpgroup, four neighbouring warps: `wgmma` of sm_90a. Both
// factors, f16 or bf16, are in shared memory, as the copy engine wrote them (bulk_copy.cuh); sums
// are fp32 in registers.
//
// A factor consists of chunks: rows of kChunk numbers (64 or 128 bytes), one row behind the other,
// their groups of 16 bytes swizzled over the banks. The inner dimension of the product runs along
// the rows ("along"), or from row to row ("across").
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/tensor_core.cuh"
#include "thimble/tensor/dtype.h"

// Code for sm_90a has these instructions; kernels that use them are empty elsewhere.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define THIMBLE_HAS_WARPGROUPS 1
#else
#define THIMBLE_HAS_WARPGROUPS 0
#endif

namespace thimble {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWarpgroupRows = 64;   // of sums
inline constexpr int kWarpgroupInner = 16;  // inner dimension of one product
// Chunks begin at multiples of this, after which the swizzle repeats.
inline constexpr int kChunkAlignment = 1024;

template <int kChunk>
inline constexpr int kChunkRowBytes = 2 * kChunk;

// The description of a factor's place in shared memory, as the instruction takes it.
// kAcross: `chunk_bytes` is the distance between neighbouring chunks.
template <int kChunk, bool kAcross>
__device__ uint64_t FactorAt(uint32_t address, uint32_t chunk_bytes = 16) {
  static_assert(kChunk == 32 || kChunk == 64);
  constexpr uint64_t kSwizzle = kChunk == 64 ? 1 : 2;
  constexpr uint64_t kEightRows = 8 * kChunkRowBytes<kChunk> / 16;
  return uint64_t{(address & 0x3FFFF) / 16} | uint64_t{kAcross ? chunk_bytes / 16 : 1} << 16 |
         kEightRows << 32 | kSwizzle << 62;
}
// What to add to a factor for the next 16 numbers of the inner dimension.
template <int kChunk, bool kAcross>
inline constexpr uint64_t kNextInner = (kAcross ? kWarpgroupInner * kChunkRowBytes<kChunk>
                                                : kWarpgroupInner * 2) /
                                       16;

// The sums of one thread: sums[4 * i + 2 * h + j] is in row 16 * warp + lane / 4 + 8 * h and column
// 8 * i + lane % 4 * 2 + j, where warp counts within the warpgroup.
template <int kColumns>
using WarpgroupSums = float[kColumns / 2];

#if THIMBLE_HAS_WARPGROUPS

// Before the first product, and after registers of sums were written by other instructions.
__device__ inline void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Ends a batch of products.
__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until all but the last kBatches batches have completed.
template <int kBatches>
__device__ void WaitForProductsBut() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kBatches) : "memory");
}

#define THIMBLE_SUMS_8(i)                                                       \
  "+f"(sums[i]), "+f"(sums[(i) + 1]), "+f"(sums[(i) + 2]), "+f"(sums[(i) + 3]), \
      "+f"(sums[(i) + 4]), "+f"(sums[(i) + 5]), "+f"(sums[(i) + 6]), "+f"(sums[(i) + 7])
#define THIMBLE_SUMS_16(i) THIMBLE_SUMS_8(i), THIMBLE_SUMS_8((i) + 8)
#define THIMBLE_SUMS_32(i) THIMBLE_SUMS_16(i), THIMBLE_SUMS_16((i) + 16)
#define THIMBLE_SUMS_64(i) THIMBLE_SUMS_32(i), THIMBLE_SUMS_32((i) + 32)
#define THIMBLE_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define THIMBLE_NAMES_32 \
  THIMBLE_NAMES_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define THIMBLE_NAMES_64                                                             \
  THIMBLE_NAMES_32                                                                   \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define THIMBLE_NAMES_80 \
  THIMBLE_NAMES_64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define THIMBLE_PRODUCT(columns, types, count, a, b, adding, across_a, across_b)                   \
  asm volatile(                                                                                    \
      "{\n  .reg .pred adds;\n  setp.ne.b32 adds, %" adding                                        \
      ", 0;\n  wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." types                         \
      " {" THIMBLE_NAMES_##count "}, %" a ", %" b ", adds, 1, 1, %" across_a ", %" across_b ";\n}" \
      : THIMBLE_SUMS_##count(0)                                                                    \
      : "l"(factor_a), "l"(factor_b), "r"(int{adds}), "n"(int{kAcrossA}), "n"(int{kAcrossB}))
#define THIMBLE_SUMS_80(i) THIMBLE_SUMS_64(i), THIMBLE_SUMS_16((i) + 64)
#define THIMBLE_PRODUCT_BY_COLUMNS(types)                            \
  if constexpr (kColumns == 32) {                                    \
    THIMBLE_PRODUCT("32", types, 16, "16", "17", "18", "19", "20");  \
  } else if constexpr (kColumns == 64) {                             \
    THIMBLE_PRODUCT("64", types, 32, "32", "33", "34", "35", "36");  \
  } else if constexpr (kColumns == 128) {                            \
    THIMBLE_PRODUCT("128", types, 64, "64", "65", "66", "67", "68"); \
  } else {                                                           \
    THIMBLE_PRODUCT("160", types, 80, "80", "81", "82", "83", "84"); \
  }

// Adds the product of 64 x 16 and 16 x kColumns factors to the sums, or assigns it unless `adds`.
// Called by all threads of a warpgroup; completes later. Between products that are not complete, no
// other instruction may write the sums: assigning the first product avoids setting them to zero.
template <class Number, int kColumns, bool kAcrossA, bool kAcrossB>
__device__ void MultiplyAsync(uint64_t factor_a, uint64_t factor_b, bool adds,
                              WarpgroupSums<kColumns>& sums) {
  static_assert(kColumns == 32 || kColumns == 64 || kColumns == 128 || kColumns == 160);
  if constexpr (std::is_same_v<Number, F16>) {
    THIMBLE_PRODUCT_BY_COLUMNS("f16.f16")
  } else {
    static_assert(std::is_same_v<Number, BF16>);
    THIMBLE_PRODUCT_BY_COLUMNS("bf16.bf16")
  }
}

#undef THIMBLE_PRODUCT_BY_COLUMNS
#undef THIMBLE_PRODUCT
#undef THIMBLE_NAMES_80
#undef THIMBLE_NAMES_64
#undef THIMBLE_NAMES_32
#undef THIMBLE_NAMES_16
#undef THIMBLE_SUMS_80
#undef THIMBLE_SUMS_64
#undef THIMBLE_SUMS_32
#undef THIMBLE_SUMS_16
#undef THIMBLE_SUMS_8

#endif  // THIMBLE_HAS_WARPGROUPS

}  // namespace thimble
