// AttentionSizes as GPU code takes them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/graph/kernel.h"
#include "thimble/ops/attention/sizes.h"

namespace thimble::heads {

struct HeadSizes {
  int64_t batch;
  int queries, sources, channels, heads, head_channels;
  float scale;

  explicit HeadSizes(const AttentionSizes& sizes)
      : batch(sizes.batch),
        queries(static_cast<int>(sizes.queries)),
        sources(static_cast<int>(sizes.sources)),
        channels(static_cast<int>(sizes.channels)),
        heads(static_cast<int>(sizes.heads)),
        head_channels(static_cast<int>(sizes.head_channels())),
        scale(static_cast<float>(sizes.scale)) {}
  explicit HeadSizes(const KernelCall& call)
      : HeadSizes(AttentionSizes(call.in_shape(0), call.in_shape(1), call.attributes)) {}

  __host__ __device__ int64_t query_rows() const { return batch * queries * heads; }
  __host__ __device__ int64_t source_rows() const { return batch * sources * heads; }
  // Of scores whose exponentials are powers of 2, which take half the time of those of e.
  __device__ float scale_of_exponents() const { return scale * 1.44269504F; }
  __device__ bool IsLength(int length) const { return length >= 0 && length <= sources; }
  // Indices of the first channel of a head in q, y, and in k, v.
  __device__ int64_t Query(int64_t b, int t, int h) const {
    return (b * queries + t) * channels + h * head_channels;
  }
  __device__ int64_t Source(int64_t b, int s, int h) const {
    return (b * sources + s) * channels + h * head_channels;
  }
  // Index of a probability within its sample: what random draws use.
  __device__ int64_t Drawn(int t, int h, int s) const {
    return (int64_t{t} * heads + h) * kMaxDroppedSources + s;
  }
  // Of a query's numbers in scratch, (B, H, T).
  __device__ int64_t Kept(int64_t b, int h, int t) const { return (b * heads + h) * queries + t; }
};

}  // namespace thimble::heads
