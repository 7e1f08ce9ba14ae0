#include "thimble/device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "thimble/base/byte_size.h"
#include "thimble/device/cuda/capture.h"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/early_edges.h"
#include "thimble/device/cuda/open_cuda.h"
#include "thimble/device/cuda/paint_device.h"
#include "thimble/device/paint.h"

namespace thimble {

// Page-locked host memory, counted by the device.
class PinnedMemory final : public HostMemory {
 public:
  PinnedMemory(CudaDevice& device, size_t size_bytes) : device_(device) {
    if (size_bytes == 0) return;
    void* memory = nullptr;
    const cudaError_t code = cudaHostAlloc(&memory, size_bytes, cudaHostAllocDefault);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clears the error, which is handled here
      throw std::bad_alloc();
    }
    THIMBLE_CUDA(code);
    std::memset(memory, 0, size_bytes);
    bytes_ = {static_cast<std::byte*>(memory), size_bytes};
    Count(static_cast<int64_t>(size_bytes));
  }
  ~PinnedMemory() override {
    if (bytes_.empty()) return;
    device_.Synchronize();
    THIMBLE_CUDA(cudaFreeHost(bytes_.data()));
    Count(-static_cast<int64_t>(bytes_.size()));
  }

 private:
  void Count(int64_t size_bytes) {
    DeviceMemory& memory = device_.memory_;
    ++device_.allocation_calls_;
    memory.pinned_bytes += size_bytes;
    memory.pinned_peak_bytes = std::max(memory.pinned_peak_bytes, memory.pinned_bytes);
  }

  CudaDevice& device_;
};

namespace {

// The first GPU; CUDA_VISIBLE_DEVICES chooses which one that is.
constexpr int kGpu = 0;
// The lowest compute capability that this program has code for (cmake/cuda.cmake).
constexpr int kMinMajor = 8;

// Left for steps that are recorded in later runs: up to 6.3 MB were seen (wrn-28-2 in parts of 20).
constexpr size_t kGraphBytes = size_t{16} << 20;

struct GpuMemory {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  int64_t used_bytes() const { return static_cast<int64_t>(total_bytes - free_bytes); }
};

GpuMemory ReadGpuMemory() {
  GpuMemory memory;
  THIMBLE_CUDA(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes));
  return memory;
}

uint32_t* WordsAt(std::span<std::byte> arena, size_t offset) {
  return reinterpret_cast<uint32_t*>(arena.data() + offset);  // NOLINT: the arena is raw storage
}

int64_t NumWords(size_t begin, size_t end) {
  return end > begin ? static_cast<int64_t>((end - begin) / kPaintBytes) : 0;
}

Result<void> Succeeded(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return {};
  cudaGetLastError();  // clears the error, which is handled here
  return BadInput(fmt::format("--device cuda: {}: {}", what, cudaGetErrorString(code)));
}

}  // namespace

Result<void> CheckCudaIsBuilt() { return {}; }

Result<void> CheckCudaDevice() {
  // Loads all code with the context, so that none is loaded while a step is recorded or measured.
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  int driver = 0;
  THIMBLE_TRY(Succeeded(cudaDriverGetVersion(&driver), "cannot query the driver version"));
  if (driver == 0) return BadInput("--device cuda: no CUDA device: no NVIDIA driver is installed");
  int num_gpus = 0;
  THIMBLE_TRY(Succeeded(cudaGetDeviceCount(&num_gpus), "no CUDA device"));
  if (num_gpus == 0) return BadInput("--device cuda: no CUDA device");
  int major = 0;
  int minor = 0;
  THIMBLE_TRY(Succeeded(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, kGpu),
                        "cannot query the GPU's compute capability"));
  THIMBLE_TRY(Succeeded(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, kGpu),
                        "cannot query the GPU's compute capability"));
  if (major < kMinMajor) {
    return BadInput(
        fmt::format("--device cuda: the GPU has compute capability {}.{}, expected at least {}.0",
                    major, minor, kMinMajor));
  }
  return {};
}

Result<std::unique_ptr<Device>> OpenCudaDevice(size_t arena_bytes) {
  THIMBLE_TRY(CheckCudaDevice());
  return CudaDevice::Open(arena_bytes);
}

Result<std::unique_ptr<Device>> CudaDevice::Open(size_t arena_bytes) {
  std::unique_ptr<CudaDevice> device(new CudaDevice());
  THIMBLE_TRY(Succeeded(cudaSetDevice(kGpu), "cannot use the GPU"));
  THIMBLE_TRY(
      Succeeded(cudaFree(nullptr), "cannot create a context on the GPU"));  // creates the context
  cudaDeviceProp properties{};
  THIMBLE_CUDA(cudaGetDeviceProperties(&properties, kGpu));
  device->name_ = properties.name;
  THIMBLE_CUDA(cudaStreamCreateWithFlags(&device->stream_, cudaStreamNonBlocking));
  for (cudaEvent_t& event : device->mark_events_) {
    THIMBLE_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  const GpuMemory memory = ReadGpuMemory();
  device->memory_.context_bytes = memory.used_bytes();
  if (arena_bytes > 0) {
    void* arena = nullptr;
    const bool enough = arena_bytes + kGraphBytes <= memory.free_bytes;
    const cudaError_t code = enough ? cudaMalloc(&arena, arena_bytes) : cudaErrorMemoryAllocation;
    if (code != cudaSuccess) {
      cudaGetLastError();
      return Failed(fmt::format(
          "not enough memory: cannot allocate an arena of {} ({} bytes) plus {} for recorded steps "
          "on {}, where {} ({} bytes) are free: {}; try a smaller --batch or, in training, "
          "--microbatch or --recompute",
          FormatBytes(static_cast<int64_t>(arena_bytes)), arena_bytes,
          FormatBytes(static_cast<int64_t>(kGraphBytes)), device->name_,
          FormatBytes(static_cast<int64_t>(memory.free_bytes)), memory.free_bytes,
          cudaGetErrorString(code)));
    }
    ++device->allocation_calls_;
    device->arena_ = {static_cast<std::byte*>(arena), arena_bytes};
  }
  return std::unique_ptr<Device>(std::move(device));
}

CudaDevice::~CudaDevice() {
  if (stream_ == nullptr) return;
  Synchronize();
  for (cudaGraphExec_t graph : graphs_) {
    if (graph != nullptr) THIMBLE_CUDA(cudaGraphExecDestroy(graph));
  }
  for (cudaEvent_t event : mark_events_) {
    if (event != nullptr) THIMBLE_CUDA(cudaEventDestroy(event));
  }
  for (cudaEvent_t event : step_events_) THIMBLE_CUDA(cudaEventDestroy(event));
  THIMBLE_CUDA(cudaStreamDestroy(stream_));
  THIMBLE_CUDA(cudaFree(arena_.data()));
}

void CudaDevice::Write(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  THIMBLE_CUDA(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_));
}

void CudaDevice::Read(const std::byte* from, std::span<std::byte> to) {
  if (to.empty()) return;
  THIMBLE_CUDA(cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, stream_));
}

void CudaDevice::Paint(size_t begin, size_t end) {
  LaunchPaint(stream_, WordsAt(arena_, begin), NumWords(begin, end));
}

size_t CudaDevice::UsedBytes(size_t begin, size_t end) {
  const int64_t words = CountToLastUsedWord(stream_, WordsAt(arena_, begin), NumWords(begin, end));
  return static_cast<size_t>(words) * kPaintBytes;
}

cudaGraphExec_t CudaDevice::Record(const Work& work) {
  Synchronize();
  const int64_t before = ReadGpuMemory().used_bytes();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  // The capture does not affect other host threads (the prefetcher).
  THIMBLE_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  CaptureInOrder(stream_, work);
  THIMBLE_CUDA(cudaStreamEndCapture(stream_, &graph));
  LetKernelsBeginEarly(graph);
  THIMBLE_CUDA(cudaGraphInstantiate(&ready, graph, 0));
  THIMBLE_CUDA(cudaGraphUpload(ready, stream_));
  Synchronize();
  THIMBLE_CUDA(cudaGraphDestroy(graph));
  memory_.graph_bytes += ReadGpuMemory().used_bytes() - before;
  return ready;
}

bool CudaDevice::Replay(size_t key, const Work& work) {
  if (key >= graphs_.size()) graphs_.resize(key + 1, nullptr);
  const bool is_new = graphs_[key] == nullptr;
  if (is_new) graphs_[key] = Record(work);
  THIMBLE_CUDA(cudaGraphLaunch(graphs_[key], stream_));
  return is_new;
}

void CudaDevice::Time(FunctionRef<void(size_t)> enqueue, std::span<double> seconds) {
  while (step_events_.size() < seconds.size() + 1) {
    THIMBLE_CUDA(cudaEventCreate(&step_events_.emplace_back()));
  }
  THIMBLE_CUDA(cudaEventRecord(step_events_[0], stream_));
  for (size_t step = 0; step < seconds.size(); ++step) {
    enqueue(step);
    THIMBLE_CUDA(cudaEventRecord(step_events_[step + 1], stream_));
  }
  Synchronize();
  for (size_t step = 0; step < seconds.size(); ++step) {
    float milliseconds = 0;
    THIMBLE_CUDA(cudaEventElapsedTime(&milliseconds, step_events_[step], step_events_[step + 1]));
    seconds[step] += static_cast<double>(milliseconds) * 1e-3;
  }
}

DeviceMark CudaDevice::Mark() {
  ++last_mark_;
  THIMBLE_CUDA(cudaEventRecord(mark_events_[last_mark_ % mark_events_.size()], stream_));
  return last_mark_;
}

void CudaDevice::Wait(DeviceMark mark) {
  // The events of older marks were reused for later ones; wait for the oldest mark that still has
  // its event.
  const DeviceMark newer = last_mark_ < mark_events_.size() ? 0 : last_mark_ - mark_events_.size();
  const DeviceMark waited = std::max(mark, newer + 1);
  THIMBLE_CUDA(cudaEventSynchronize(mark_events_[waited % mark_events_.size()]));
}

void CudaDevice::Synchronize() { THIMBLE_CUDA(cudaStreamSynchronize(stream_)); }

std::unique_ptr<HostMemory> CudaDevice::AllocateHost(size_t size_bytes) {
  return std::make_unique<PinnedMemory>(*this, size_bytes);
}

DeviceMemory CudaDevice::memory() const {
  DeviceMemory memory = memory_;
  memory.driver_bytes = ReadGpuMemory().used_bytes();
  return memory;
}

}  // namespace thimble
