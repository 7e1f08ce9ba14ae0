// The functions of the CUDA runtime that Thimble calls, for one emulated GPU: compute capability
// 8.0, whose memory is that of the host.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/support/gpu_emulator/block.h"
#include "tests/support/gpu_emulator/graph.h"
#include "tests/support/gpu_emulator/launch.h"
#include "tests/support/gpu_emulator/shared_memory.h"

struct CUevent_st {
  std::chrono::steady_clock::time_point time;
};

namespace gpu_emulator {
namespace {

constexpr int kMajor = 8;
constexpr int kMinor = 0;
// Few: kernels that fill the GPU with blocks then have less to do.
constexpr int kMultiprocessors = 4;
constexpr size_t kMemoryBytes = size_t{8} << 30;
// As the driver's own.
constexpr size_t kContextBytes = size_t{256} << 20;
constexpr size_t kAlignment = 512;
// Larger allocations are not filled, as they would take memory that is never used.
constexpr size_t kMostFilledBytes = size_t{64} << 20;
constexpr int kForgotten = 0xFF;              // NaN
constexpr unsigned kMaxBlocksAcross = 65535;  // along y and z

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<int> exclusive_captures = 0;

cudaError_t Report(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

class Memory {
 public:
  void* Allocate(size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    if (size_bytes > free_bytes()) return nullptr;
    const size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
#ifdef __SANITIZE_ADDRESS__
    void* begin = nullptr;
    if (posix_memalign(&begin, kAlignment, size_bytes) != 0) return nullptr;
#else
    void* begin = std::aligned_alloc(kAlignment, rounded);
#endif
    if (begin == nullptr) return nullptr;
    if (rounded <= kMostFilledBytes) std::memset(begin, kForgotten, size_bytes);
    sizes_[begin] = size_bytes;
    used_bytes_ += size_bytes;
    return begin;
  }
  bool Free(void* begin) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(begin);
    if (found == sizes_.end()) return false;
    used_bytes_ -= found->second;
    sizes_.erase(found);
    std::free(begin);
    return true;
  }
  // Whether all these bytes are in one allocation.
  bool Has(const void* begin, size_t size_bytes) const {
    const std::lock_guard lock(mutex_);
    auto next = sizes_.upper_bound(const_cast<void*>(begin));
    if (next == sizes_.begin()) return false;
    const auto& [first, size] = *--next;
    const auto offset =
        static_cast<size_t>(static_cast<const std::byte*>(begin) - static_cast<std::byte*>(first));
    return offset <= size && size_bytes <= size - offset;
  }
  size_t free_bytes() const { return kMemoryBytes - used_bytes_; }

 private:
  mutable std::mutex mutex_;
  std::map<void*, size_t> sizes_;
  size_t used_bytes_ = kContextBytes;
};
Memory& memory() {
  static auto& memory = *new Memory();  // also used while the program ends
  return memory;
}

cudaError_t CheckGrid(const Grid& grid) {
  const auto& [kernel, blocks, threads, shared_bytes] = grid;
  const uint64_t num_threads = uint64_t{threads.x} * threads.y * threads.z;
  if (uint64_t{blocks.x} * blocks.y * blocks.z == 0 || num_threads == 0 ||
      num_threads > kMaxThreads || blocks.y > kMaxBlocksAcross || blocks.z > kMaxBlocksAcross ||
      threads.z > 64) {
    return cudaErrorInvalidConfiguration;
  }
  return shared_bytes > kMaxSharedBytes ? cudaErrorInvalidValue : cudaSuccess;
}

bool IsCopyAllowed(const void* to, const void* from, size_t size_bytes, cudaMemcpyKind kind) {
  const bool to_gpu = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_gpu = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault || size_bytes == 0) return true;
  return memory().Has(to, size_bytes) == to_gpu && memory().Has(from, size_bytes) == from_gpu;
}

bool Records(cudaStream_t stream) { return stream != nullptr && stream->recorded != nullptr; }

}  // namespace

void Enqueue(cudaStream_t stream, const Grid& grid, std::function<void()> thread) {
  if (Report(CheckGrid(grid)) != cudaSuccess) return;
  RunOrRecord(stream, cudaGraphNodeTypeKernel,
              [grid, thread = std::move(thread)] { RunGrid(grid, thread); });
}

cudaError_t CheckAttributes(const cudaLaunchConfig_t& config) {
  return Report(config.numAttrs == 0 ? cudaSuccess : cudaErrorNotSupported);
}

}  // namespace gpu_emulator

using namespace gpu_emulator;  // NOLINT: only the runtime's functions follow

extern "C" {

// ---- The GPU

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return Report(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "emulated GPU");
  properties->major = kMajor;
  properties->minor = kMinor;
  properties->multiProcessorCount = kMultiprocessors;
  properties->totalGlobalMem = kMemoryBytes;
  properties->warpSize = kWarpLanes;
  properties->maxThreadsPerBlock = kMaxThreads;
  properties->sharedMemPerBlock = kMaxStaticSharedBytes;
  properties->sharedMemPerBlockOptin = kMaxSharedBytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  const std::map<cudaDeviceAttr, size_t> values = {
      {cudaDevAttrComputeCapabilityMajor, kMajor},
      {cudaDevAttrComputeCapabilityMinor, kMinor},
      {cudaDevAttrMultiProcessorCount, kMultiprocessors},
      {cudaDevAttrWarpSize, kWarpLanes},
      {cudaDevAttrMaxThreadsPerBlock, kMaxThreads},
      {cudaDevAttrMaxSharedMemoryPerBlock, kMaxStaticSharedBytes},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, kMaxSharedBytes},
  };
  const auto found = values.find(attribute);
  if (found == values.end()) return Report(cudaErrorNotSupported);
  *value = static_cast<int>(found->second);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*kernel*/) {
  *attributes = {};
  attributes->binaryVersion = 10 * kMajor + kMinor;
  attributes->ptxVersion = attributes->binaryVersion;
  // Launch bounds are not known here. Kernels that are asked for theirs need instructions of later
  // GPUs, without which they have none.
  attributes->maxThreadsPerBlock = 0;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* /*kernel*/, cudaFuncAttribute attribute, int value) {
  const bool fits = attribute != cudaFuncAttributeMaxDynamicSharedMemorySize ||
                    value <= static_cast<int>(kMaxSharedBytes);
  return Report(fits ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* /*name*/, void** function,
                                             unsigned int /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  *function = nullptr;
  *found = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// ---- Errors

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "see driver_types.h";
}
const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorNotSupported:
      return "the GPU emulator does not have this";
    default:
      return "another error of the CUDA runtime (driver_types.h)";
  }
}

// ---- Memory

cudaError_t cudaMalloc(void** begin, size_t size_bytes) {
  if (exclusive_captures > 0) return Report(cudaErrorStreamCaptureUnsupported);
  *begin = memory().Allocate(size_bytes);
  return Report(*begin == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFree(void* begin) {
  if (begin == nullptr) return cudaSuccess;
  return Report(memory().Free(begin) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** begin, size_t size_bytes, unsigned int /*flags*/) {
  *begin = std::malloc(size_bytes);
  return Report(*begin == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFreeHost(void* begin) {
  std::free(begin);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = memory().free_bytes();
  *total_bytes = kMemoryBytes;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size_bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!IsCopyAllowed(to, from, size_bytes, kind)) return Report(cudaErrorInvalidValue);
  RunOrRecord(stream, cudaGraphNodeTypeMemcpy, [=] { std::memcpy(to, from, size_bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t size_bytes, cudaMemcpyKind kind) {
  if (exclusive_captures > 0) return Report(cudaErrorStreamCaptureUnsupported);
  return cudaMemcpyAsync(to, from, size_bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size_bytes, cudaStream_t stream) {
  if (!memory().Has(to, size_bytes)) return Report(cudaErrorInvalidValue);
  RunOrRecord(stream, cudaGraphNodeTypeMemset, [=] { std::memset(to, value, size_bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t size_bytes) {
  return cudaMemsetAsync(to, value, size_bytes, nullptr);
}
// Variables of GPU code are variables of the program.
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t size_bytes,
                                      size_t offset, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  RunOrRecord(stream, cudaGraphNodeTypeMemcpy,
              [=] { std::memcpy(to, static_cast<const std::byte*>(symbol) + offset, size_bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t size_bytes,
                                    size_t offset, cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  auto* to = static_cast<std::byte*>(const_cast<void*>(symbol)) + offset;
  RunOrRecord(stream, cudaGraphNodeTypeMemcpy, [=] { std::memcpy(to, from, size_bytes); });
  return cudaSuccess;
}

// ---- Streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int /*flags*/) {
  *stream = new CUstream_st();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Report(Records(stream) ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  *event = new CUevent_st();
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (Records(stream)) return Report(cudaErrorStreamCaptureUnsupported);
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t /*event*/) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
}

// ---- Graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  stream->recorded = std::make_unique<CUgraph_st>();
  stream->next_waits_for.clear();
  stream->forbids_other_calls = mode == cudaStreamCaptureModeGlobal;
  exclusive_captures += stream->forbids_other_calls ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!Records(stream)) return Report(cudaErrorIllegalState);
  exclusive_captures -= stream->forbids_other_calls ? 1 : 0;
  *graph = stream->recorded.release();
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* /*id*/, cudaGraph_t* /*graph*/,
                                     const cudaGraphNode_t** nodes,
                                     const cudaGraphEdgeData** /*edges*/, size_t* count) {
  *status = Records(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  *nodes = stream->next_waits_for.data();
  *count = stream->next_waits_for.size();
  return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* /*edges*/, size_t count,
                                                unsigned int flags) {
  if (!Records(stream) || flags != cudaStreamSetCaptureDependencies) {
    return Report(cudaErrorIllegalState);
  }
  stream->next_waits_for.assign(nodes, nodes + count);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  *ready = new CUgraphExec_st(MakeReady(*graph));
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t /*graph*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (Records(stream)) return Report(cudaErrorNotSupported);
  RunNodes(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->type;
  return cudaSuccess;
}
// Only for early launches, which this GPU does not have.
cudaError_t cudaGraphGetEdges(cudaGraph_t /*graph*/, cudaGraphNode_t* /*from*/,
                              cudaGraphNode_t* /*to*/, cudaGraphEdgeData* /*edges*/,
                              size_t* /*count*/) {
  return Report(cudaErrorNotSupported);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t /*graph*/, const cudaGraphNode_t* /*from*/,
                                     const cudaGraphNode_t* /*to*/,
                                     const cudaGraphEdgeData* /*edges*/, size_t /*count*/) {
  return Report(cudaErrorNotSupported);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t /*graph*/, const cudaGraphNode_t* /*from*/,
                                        const cudaGraphNode_t* /*to*/,
                                        const cudaGraphEdgeData* /*edges*/, size_t /*count*/) {
  return Report(cudaErrorNotSupported);
}

}  // extern "C"
