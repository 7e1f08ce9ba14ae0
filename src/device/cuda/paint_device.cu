#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/paint_device.h"
#include "thimble/device/paint.h"

namespace thimble {
namespace {

// A module variable, so that measuring memory allocates none.
__device__ unsigned long long last_used_count;

struct PaintWord {
  uint32_t* words;
  __device__ void operator()(int64_t i) const { words[i] = kPaint; }
};

__global__ void ForgetLastUsed() {
  WaitForKernelsBefore();
  last_used_count = 0;
}

__global__ void __launch_bounds__(kElementThreads)
    FindLastUsed(const uint32_t* words, int64_t num_words) {
  __shared__ unsigned long long block_count;
  if (threadIdx.x == 0) block_count = 0;
  __syncthreads();
  WaitForKernelsBefore();
  unsigned long long count = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < num_words; i += step) {
    if (words[i] != kPaint) count = static_cast<unsigned long long>(i) + 1;  // i only increases
  }
  if (count != 0) atomicMax(&block_count, count);
  __syncthreads();
  if (threadIdx.x == 0 && block_count != 0) atomicMax(&last_used_count, block_count);
}

}  // namespace

void LaunchPaint(cudaStream_t stream, uint32_t* words, int64_t num_words) {
  LaunchElements(stream, num_words, PaintWord{words});
}

int64_t CountToLastUsedWord(cudaStream_t stream, const uint32_t* words, int64_t num_words) {
  if (num_words == 0) return 0;
  ForgetLastUsed<<<1, 1, 0, stream>>>();
  THIMBLE_CUDA_LAUNCHED();
  const int64_t blocks = std::min((num_words - 1) / kElementThreads + 1, kMaxElementBlocks);
  FindLastUsed<<<static_cast<unsigned>(blocks), kElementThreads, 0, stream>>>(words, num_words);
  THIMBLE_CUDA_LAUNCHED();
  unsigned long long count = 0;
  THIMBLE_CUDA(cudaMemcpyFromSymbolAsync(&count, last_used_count, sizeof(count), 0,
                                         cudaMemcpyDeviceToHost, stream));
  THIMBLE_CUDA(cudaStreamSynchronize(stream));
  return static_cast<int64_t>(count);
}

}  // namespace thimble
