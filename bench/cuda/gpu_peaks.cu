#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "bench/cuda/gpu_peaks.h"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/tensor_core.cuh"

namespace thimble {
namespace {

// Sixteen warps on a multiprocessor, four for each of its schedulers, with eight chains each: more
// operations in flight than the units need to be always busy, in few enough registers.
constexpr int kChainThreads = 256;
constexpr int kChainBlocksPerMultiprocessor = 2;
constexpr int kChains = 8;
// About ten milliseconds each on an H100.
constexpr int kTf32Rounds = 100'000;
constexpr int kFp32Rounds = 500'000;
static_assert(kTf32Rounds % 2 == 0);

// Each thread has several loads in flight before it stores the first.
constexpr int kCopyThreads = 256;
constexpr int kCopiesPerThread = 4;
// Far more than caches hold; even the minimum is five times an L2 of 50 MiB for both arrays.
constexpr size_t kMaxArrayBytes = size_t{1} << 30;
constexpr size_t kMinArrayBytes = size_t{128} << 20;

constexpr int kRuns = 10;  // the first ones also raise the clock rate

// The sign of B alternates, so that sums stay small for any number of rounds. Chains begin with
// different numbers and one number per thread is written, so that the compiler cannot remove any.
__global__ void __launch_bounds__(kChainThreads)
    Tf32Chains(int rounds, float factor, float* results) {
  const float lane = static_cast<float>(threadIdx.x % 32);
  TensorCoreA a;
  for (int i = 0; i < 4; ++i) {
    a.values[i] = RoundToTf32(factor + lane * 0.01F + static_cast<float>(i) * 0.1F);
  }
  TensorCoreB plus;
  TensorCoreB minus;
  for (int i = 0; i < 2; ++i) {
    const float number = factor - lane * 0.02F + static_cast<float>(i) * 0.1F;
    plus.values[i] = RoundToTf32(number);
    minus.values[i] = RoundToTf32(-number);
  }
  float sums[kChains][4];
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[chain][i] = factor * static_cast<float>(chain + i);
  }
  for (int round = 0; round < rounds; round += 2) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) MultiplyAdd<float>(a, plus, sums[chain]);
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) MultiplyAdd<float>(a, minus, sums[chain]);
  }
  float total = 0;
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
    total += sums[chain][0] + sums[chain][1] + sums[chain][2] + sums[chain][3];
  }
  results[blockIdx.x * kChainThreads + threadIdx.x] = total;
}

// Numbers converge to term / (1 - factor): neither huge nor denormal.
__global__ void __launch_bounds__(kChainThreads)
    Fp32Chains(int rounds, float factor, float term, float* results) {
  float numbers[kChains];
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
    numbers[chain] = static_cast<float>(threadIdx.x + chain) * 0.01F;
  }
#pragma unroll 16
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) {
      numbers[chain] = fmaf(numbers[chain], factor, term);
    }
  }
  float total = 0;
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) total += numbers[chain];
  results[blockIdx.x * kChainThreads + threadIdx.x] = total;
}

// Requires as many elements as all threads copy.
__global__ void __launch_bounds__(kCopyThreads)
    CopyArray(const float4* __restrict__ from, float4* __restrict__ to) {
  const size_t first = size_t{blockIdx.x} * (kCopyThreads * kCopiesPerThread) + threadIdx.x;
  float4 copied[kCopiesPerThread];
#pragma unroll
  for (int i = 0; i < kCopiesPerThread; ++i) copied[i] = from[first + i * kCopyThreads];
#pragma unroll
  for (int i = 0; i < kCopiesPerThread; ++i) to[first + i * kCopyThreads] = copied[i];
}

// GPU memory, freed by the destructor.
class GpuArray {
 public:
  GpuArray() = default;
  ~GpuArray() { THIMBLE_CUDA(cudaFree(data_)); }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  // False if there is not enough.
  bool Allocate(size_t size_bytes) {
    const cudaError_t code = cudaMalloc(&data_, size_bytes);
    if (code == cudaSuccess) return true;
    if (code != cudaErrorMemoryAllocation) THIMBLE_CUDA(code);
    cudaGetLastError();  // clears the error, which is handled here
    data_ = nullptr;
    return false;
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

// A stream, and the time of the work launched on it.
class GpuStopwatch {
 public:
  GpuStopwatch() {
    THIMBLE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    THIMBLE_CUDA(cudaEventCreate(&begin_));
    THIMBLE_CUDA(cudaEventCreate(&end_));
  }
  ~GpuStopwatch() {
    THIMBLE_CUDA(cudaEventDestroy(begin_));
    THIMBLE_CUDA(cudaEventDestroy(end_));
    THIMBLE_CUDA(cudaStreamDestroy(stream_));
  }
  GpuStopwatch(const GpuStopwatch&) = delete;
  GpuStopwatch& operator=(const GpuStopwatch&) = delete;

  // Seconds of the fastest run of launch(stream).
  template <class Launch>
  double FastestSeconds(const Launch& launch) {
    float fastest_ms = 0;
    for (int run = 0; run < kRuns; ++run) {
      THIMBLE_CUDA(cudaEventRecord(begin_, stream_));
      launch(stream_);
      THIMBLE_CUDA_LAUNCHED();
      THIMBLE_CUDA(cudaEventRecord(end_, stream_));
      THIMBLE_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      THIMBLE_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      fastest_ms = run == 0 ? ms : std::min(fastest_ms, ms);
    }
    return static_cast<double>(fastest_ms) * 1e-3;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

int CountMultiprocessors() {
  int gpu = 0;
  int count = 0;
  THIMBLE_CUDA(cudaGetDevice(&gpu));
  THIMBLE_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return count;
}

void MeasureArithmetic(GpuStopwatch& stopwatch, GpuPeaks& peaks) {
  const int blocks = CountMultiprocessors() * kChainBlocksPerMultiprocessor;
  const double num_threads = static_cast<double>(blocks) * kChainThreads;
  GpuArray results;
  const size_t result_bytes = static_cast<size_t>(blocks) * kChainThreads * sizeof(float);
  if (!results.Allocate(result_bytes)) THIMBLE_CUDA(cudaErrorMemoryAllocation);
  const double tf32_seconds = stopwatch.FastestSeconds([&](cudaStream_t stream) {
    Tf32Chains<<<blocks, kChainThreads, 0, stream>>>(kTf32Rounds, 0.5F, results.data<float>());
  });
  constexpr double kProductFlops = 2.0 * 16 * 8 * 8;  // of one MultiplyAdd of a warp
  peaks.tf32_flops_per_second =
      num_threads / 32 * kChains * kTf32Rounds * kProductFlops / tf32_seconds;
  const double fp32_seconds = stopwatch.FastestSeconds([&](cudaStream_t stream) {
    Fp32Chains<<<blocks, kChainThreads, 0, stream>>>(kFp32Rounds, 0.75F, 0.25F,
                                                     results.data<float>());
  });
  peaks.fp32_flops_per_second = num_threads * kChains * kFp32Rounds * 2.0 / fp32_seconds;
}

void MeasureCopy(GpuStopwatch& stopwatch, GpuPeaks& peaks) {
  GpuArray arrays;  // one after the other
  size_t array_bytes = kMaxArrayBytes;
  while (!arrays.Allocate(2 * array_bytes)) {
    array_bytes /= 2;
    if (array_bytes < kMinArrayBytes) THIMBLE_CUDA(cudaErrorMemoryAllocation);
  }
  // Pages that were never written might be faster to read.
  THIMBLE_CUDA(cudaMemset(arrays.data<void>(), 0x5A, 2 * array_bytes));
  THIMBLE_CUDA(cudaDeviceSynchronize());
  const float4* from = arrays.data<float4>();
  float4* to = arrays.data<float4>() + array_bytes / sizeof(float4);
  constexpr size_t kBlockBytes = size_t{kCopyThreads} * kCopiesPerThread * sizeof(float4);
  static_assert(kMinArrayBytes % kBlockBytes == 0 && kMaxArrayBytes % kMinArrayBytes == 0);
  const auto blocks = static_cast<unsigned>(array_bytes / kBlockBytes);
  const double seconds = stopwatch.FastestSeconds(
      [&](cudaStream_t stream) { CopyArray<<<blocks, kCopyThreads, 0, stream>>>(from, to); });
  peaks.copied_bytes_per_second = 2.0 * static_cast<double>(array_bytes) / seconds;
}

}  // namespace

GpuPeaks MeasureGpuPeaks() {
  GpuPeaks peaks;
  GpuStopwatch stopwatch;
  MeasureArithmetic(stopwatch, peaks);
  MeasureCopy(stopwatch, peaks);
  return peaks;
}

}  // namespace thimble
