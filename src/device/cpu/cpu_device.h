// The CPU as a device: the arena is host memory, and every call is synchronous.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "thimble/base/result.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/device.h"

namespace thimble {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(Arena arena) : arena_(std::move(arena)) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string name() const override { return "cpu"; }
  std::span<std::byte> arena() const override { return arena_.bytes(); }
  bool arena_is_host_memory() const override { return true; }
  int64_t ArenaResidentBytes() const override { return arena_.ResidentBytes(); }
  void Write(std::byte* to, std::span<const std::byte> from) override;
  void Read(const std::byte* from, std::span<std::byte> to) override;
  void Paint(size_t begin, size_t end) override;
  size_t UsedBytes(size_t begin, size_t end) override;
  bool Replay(size_t /*key*/, const Work& work) override {
    for (size_t piece = 0; piece < work.pieces; ++piece) work.enqueue(piece);
    return false;
  }
  void Time(FunctionRef<void(size_t step)> enqueue, std::span<double> seconds) override;
  DeviceMark Mark() override { return 0; }
  void Wait(DeviceMark /*mark*/) override {}
  void Synchronize() override {}
  size_t runs_in_flight() const override { return 1; }
  std::unique_ptr<HostMemory> AllocateHost(size_t size_bytes) override;
  DeviceMemory memory() const override { return {}; }
  int64_t allocation_calls() const override { return 0; }

 private:
  Arena arena_;
};

// kFailed if the arena cannot be mapped.
Result<std::unique_ptr<Device>> OpenCpuDevice(size_t arena_bytes);

}  // namespace thimble
