// Paints and scans GPU memory, for the memory audit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thimble {

void LaunchPaint(cudaStream_t stream, uint32_t* words, int64_t num_words);

// One more than the index of the last word that is not paint; 0 if all are. Waits.
int64_t CountToLastUsedWord(cudaStream_t stream, const uint32_t* words, int64_t num_words);

}  // namespace thimble
