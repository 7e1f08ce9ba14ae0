// The GPU emulator runs right kernels and finds wrong ones.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

constexpr int kThreads = 256;

// Memory that kernels and tests share.
template <class T>
class Array {
 public:
  explicit Array(size_t count) : count_(count) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, count * sizeof(T)), cudaSuccess);
    data_ = static_cast<T*>(memory);
  }
  ~Array() { EXPECT_EQ(cudaFree(data_), cudaSuccess); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const { return {data_, data_ + count_}; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

std::vector<int> Reversed() {
  std::vector<int> numbers(kThreads);
  std::iota(numbers.rbegin(), numbers.rend(), 0);
  return numbers;
}

// ---- Right kernels

template <class T, bool kSync>
__global__ void ReverseKernel(T* to) {
  __shared__ T numbers[kThreads];
  numbers[threadIdx.x] = static_cast<T>(threadIdx.x);
  if constexpr (kSync) __syncthreads();
  to[threadIdx.x] = numbers[blockDim.x - 1 - threadIdx.x];
}

TEST(GpuEmulator, RunsBlocksWithBarriers) {
  const Array<int> result(kThreads);
  ReverseKernel<int, true><<<3, kThreads, 0, nullptr>>>(result.data());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(result.values(), Reversed());
}

__global__ void ReverseDynamicKernel(int* to) {
  extern __shared__ int numbers[];
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  to[threadIdx.x] = numbers[blockDim.x - 1 - threadIdx.x];
}

TEST(GpuEmulator, HasDynamicSharedMemory) {
  const Array<int> result(kThreads);
  ReverseDynamicKernel<<<1, kThreads, kThreads * sizeof(int)>>>(result.data());
  EXPECT_EQ(result.values(), Reversed());
}

// The sum of a warp by shuffles; lanes beyond `count` have ended.
__global__ void SumKernel(int count, double* sums, unsigned* votes) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= count) return;
  const unsigned mask = count == 32 ? 0xFFFFFFFFU : (1U << count) - 1;
  double sum = lane;
  for (int distance = count / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(mask, sum, distance);
  }
  sums[lane] = sum;
  votes[lane] = __ballot_sync(mask, lane % 3 == 0);
}

TEST(GpuEmulator, ShufflesWithinAWarp) {
  for (const int count : {4, 16, 32}) {
    const Array<double> sums(32);
    const Array<unsigned> votes(32);
    SumKernel<<<1, 32>>>(count, sums.data(), votes.data());
    for (int lane = 0; lane < count; ++lane) {
      EXPECT_EQ(sums.values()[lane], count * (count - 1) / 2);
      EXPECT_EQ(votes.values()[lane], 0x49249249U & (count == 32 ? ~0U : (1U << count) - 1));
    }
  }
}

__global__ void PlacesKernel(int* to) {
  const auto thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const auto block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  atomicAdd(&to[block * 24 + thread], static_cast<int>(thread) + 1);
}

TEST(GpuEmulator, HasThreeDimensions) {
  const Array<int> result(24 * 24);
  ASSERT_EQ(cudaMemset(result.data(), 0, 24 * 24 * sizeof(int)), cudaSuccess);
  PlacesKernel<<<dim3(2, 3, 4), dim3(4, 3, 2)>>>(result.data());
  for (int i = 0; i < 24 * 24; ++i) EXPECT_EQ(result.values()[i], i % 24 + 1);
}

__global__ void AddOneKernel(int* number) { *number += 1; }
__global__ void DoubleKernel(int* number) { *number *= 2; }

TEST(GpuEmulator, ReplaysRecordedWork) {
  const Array<int> number(1);
  *number.data() = 1;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  AddOneKernel<<<1, 1, 0, stream>>>(number.data());
  DoubleKernel<<<1, 1, 0, stream>>>(number.data());
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
  cudaStreamEndCapture(stream, &graph);
  EXPECT_EQ(*number.data(), 1);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphDestroy(graph);
  for (const int expected : {4, 10}) {
    cudaGraphLaunch(ready, stream);
    EXPECT_EQ(*number.data(), expected);
  }
  cudaGraphExecDestroy(ready);
  cudaStreamDestroy(stream);
  cudaGetLastError();
}

// ---- Wrong kernels

#ifdef THIMBLE_EMULATOR_FINDS_RACES
TEST(GpuEmulatorDeathTest, AMissingBarrierIsARace) {
  const Array<float> result(kThreads);
  const auto launch = [&] {
    ReverseKernel<float, false><<<1, kThreads>>>(result.data());
    std::exit(0);
  };
  constexpr int kExitCode = 66;  // of ThreadSanitizer
  EXPECT_EXIT(launch(), testing::ExitedWithCode(kExitCode), "data race.*emulator_test.cu");
}
#else
TEST(GpuEmulator, AMissingBarrierGivesWrongResults) {
  const Array<float> result(kThreads);
  ReverseKernel<float, false><<<1, kThreads>>>(result.data());
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) wrong += result.values()[i] == kThreads - 1 - i ? 0 : 1;
  EXPECT_GT(wrong, kThreads / 4);
}
#endif

#ifdef __SANITIZE_ADDRESS__
__global__ void BeyondKernel(float* to, int count) {
  __shared__ float numbers[5];
  if (threadIdx.x < count) numbers[threadIdx.x] = 1;
  to[threadIdx.x] = 2;
}

TEST(GpuEmulatorDeathTest, AccessesStayWithinTheirVariables) {
  const Array<float> result(8);
  BeyondKernel<<<1, 8>>>(result.data(), 5);
  EXPECT_DEATH((BeyondKernel<<<1, 8>>>(result.data(), 6)), "use-after-poison.*emulator_test.cu");
  EXPECT_DEATH((BeyondKernel<<<1, 9>>>(result.data(), 5)),
               "heap-buffer-overflow.*emulator_test.cu");
}
#endif

TEST(GpuEmulator, ReportsLaunchesThatAGpuRefuses) {
  const Array<int> result(1);
  AddOneKernel<<<1, 1025>>>(result.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  AddOneKernel<<<0, 1>>>(result.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  AddOneKernel<<<1, 1, 200 << 10>>>(result.data());
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  int host = 0;
  EXPECT_EQ(cudaMemcpy(&host, &host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  cudaGetLastError();
}

__global__ void SomeWaitKernel() {
  if (threadIdx.x < 40) __syncthreads();
  __shfl_sync(0xFFFFFFFFU, 1, 0);
  __syncthreads();
}

TEST(GpuEmulatorDeathTest, NamesBarriersThatOnlySomeThreadsReach) {
  EXPECT_DEATH(
      (SomeWaitKernel<<<1, 64>>>()),
      "wait for each other.*threads 0 to 39: __syncthreads.*threads 40 to 63: __shfl_sync");
}

__global__ void TwoBarriersKernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(GpuEmulatorDeathTest, BarriersInDifferentLinesDoNotMeet) {
  EXPECT_DEATH((TwoBarriersKernel<<<1, 64>>>()), "barriers in different lines");
}

__global__ void EndedLaneKernel(int* to) {
  if (threadIdx.x >= 20) return;
  to[threadIdx.x] = __shfl_down_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x), 1);
}

TEST(GpuEmulatorDeathTest, ShufflesReadOnlyLanesThatTakePart) {
  const Array<int> result(32);
  EXPECT_DEATH((EndedLaneKernel<<<1, 32>>>(result.data())), "lane that takes no part.*thread");
}

__global__ void OtherMaskKernel() {
  __syncwarp(threadIdx.x < 16 ? 0xFFFFU : 0xFFFFFFFFU);
  __syncthreads();
}
__global__ void WrongMaskKernel() { __syncwarp(0xFFFFU); }

TEST(GpuEmulatorDeathTest, LanesPassMasksThatAgree) {
  EXPECT_DEATH((OtherMaskKernel<<<1, 32>>>()), "threads 16 to 31: .*mask 0xffffffff");
  EXPECT_DEATH((WrongMaskKernel<<<1, 32>>>()), "not part of the mask");
}

__global__ void LargeSharedKernel() {
  __shared__ float numbers[13000];
  numbers[threadIdx.x] = 0;
}

TEST(GpuEmulatorDeathTest, SharedVariablesFit) {
  EXPECT_DEATH((LargeSharedKernel<<<1, 32>>>()), "more than 48 KiB");
}

}  // namespace
