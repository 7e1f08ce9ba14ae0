// ParallelElements: splits a flat range of elements into fixed chunks and runs them on the pool.
#pragma once

#include <algorithm>
#include <cstddef>

#include "thimble/base/function_ref.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {

// 16 Ki floats = 64 KiB: long enough to hide the cost of taking a chunk (about 50 ns), short enough
// to balance two threads over the small layers. Chunk borders depend on the size alone.
inline constexpr size_t kElementsPerChunk = size_t{1} << 14;

// Calls body(begin, end) for consecutive ranges that cover [0, num_elements).
inline void ParallelElements(ThreadPool& pool, size_t num_elements,
                             FunctionRef<void(size_t begin, size_t end)> body) {
  const size_t num_chunks = (num_elements + kElementsPerChunk - 1) / kElementsPerChunk;
  pool.Run(num_chunks, [&](size_t chunk, size_t /*thread*/) {
    const size_t begin = chunk * kElementsPerChunk;
    body(begin, std::min(num_elements, begin + kElementsPerChunk));
  });
}

}  // namespace thimble
