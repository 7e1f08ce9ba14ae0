// A GPU as a device: one cudaMalloc for the arena, one stream for all work, and each plan recorded
// as a CUDA graph in which each piece waits only for what it depends on.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/device/device.h"

namespace thimble {

class CudaDevice final : public Device {
 public:
  // Requires that CheckCudaDevice succeeded.
  static Result<std::unique_ptr<Device>> Open(size_t arena_bytes);
  ~CudaDevice() override;

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return name_; }
  std::span<std::byte> arena() const override { return arena_; }
  bool arena_is_host_memory() const override { return false; }
  int64_t ArenaResidentBytes() const override { return static_cast<int64_t>(arena_.size()); }
  void Write(std::byte* to, std::span<const std::byte> from) override;
  void Read(const std::byte* from, std::span<std::byte> to) override;
  void Paint(size_t begin, size_t end) override;
  size_t UsedBytes(size_t begin, size_t end) override;
  bool Replay(size_t key, const Work& work) override;
  void Time(FunctionRef<void(size_t step)> enqueue, std::span<double> seconds) override;
  DeviceMark Mark() override;
  void Wait(DeviceMark mark) override;
  void Synchronize() override;
  // The GPU works on one while the host prepares the next.
  size_t runs_in_flight() const override { return 2; }
  std::unique_ptr<HostMemory> AllocateHost(size_t size_bytes) override;
  DeviceMemory memory() const override;
  int64_t allocation_calls() const override { return allocation_calls_; }
  CUstream_st* stream() const override { return stream_; }

 private:
  friend class PinnedMemory;

  CudaDevice() = default;
  cudaGraphExec_t Record(const Work& work);

  std::string name_;
  cudaStream_t stream_ = nullptr;
  std::span<std::byte> arena_;
  std::vector<cudaGraphExec_t> graphs_;  // by key; null: not recorded yet
  // More than the marks waited for at any time. A reused event is later in the stream, so waiting
  // for it is always long enough.
  std::array<cudaEvent_t, 64> mark_events_{};
  DeviceMark last_mark_ = 0;
  std::vector<cudaEvent_t> step_events_;  // used by Time
  int64_t allocation_calls_ = 0;
  DeviceMemory memory_;
};

}  // namespace thimble
