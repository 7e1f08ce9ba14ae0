// Device: the machine that a program's plans run on: its arena, copies to and from it, and a queue
// of work. The executor is the same code for every device.
//
// Work runs in the order in which it is enqueued and may still be running when a call returns: Wait
// and Synchronize wait for it. On the CPU every call is synchronous.
//
//   device->Write(address, {host, 4});            // host must stay unchanged ...
//   device->Replay(plan, {steps, run the i-th step, what it must wait for});
//   device->Read(result_address, {result, 4});
//   const DeviceMark mark = device->Mark();
//   ...                                           // the host does something else
//   device->Wait(mark);                           // ... until here; now result is valid
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "thimble/base/function_ref.h"
#include "thimble/base/result.h"
#include "thimble/device/device_kind.h"

struct CUstream_st;  // the CUDA runtime's type of a stream

namespace thimble {

// A point in the order of the work; later ones are larger.
using DeviceMark = uint64_t;

// Work in pieces, enqueued in order. A piece waits for the pieces it names and for everything these
// waited for; a device may run all others concurrently with it.
struct Work {
  size_t pieces = 0;
  FunctionRef<void(size_t piece)> enqueue;
  // The earlier pieces to wait for. Called only if runs_side_by_side().
  FunctionRef<std::span<const size_t>(size_t piece)> after;
};

// Memory that a device uses in addition to the arena, as its driver reports it. All zero on the
// CPU.
struct DeviceMemory {
  int64_t context_bytes = 0;  // in use before the first allocation: context, code, other programs
  int64_t driver_bytes = 0;   // in use now, including the context
  int64_t graph_bytes = 0;    // part of it: recorded steps
  int64_t pinned_bytes = 0;   // page-locked host memory, now
  int64_t pinned_peak_bytes = 0;
};

// Host memory that the device copies from and to directly.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 protected:
  HostMemory() = default;
  std::span<std::byte> bytes_;  // 64-byte aligned, initially zero
};

class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;

  // The allocated block, of exactly the planned size. Its addresses may be dereferenced only if it
  // is host memory.
  virtual std::span<std::byte> arena() const = 0;
  virtual bool arena_is_host_memory() const = 0;
  // Bytes of the arena that are backed by memory now.
  virtual int64_t ArenaResidentBytes() const = 0;

  // Copy between the host and the arena, in order with all other work. The host memory must stay
  // valid and unchanged until the copy is done.
  virtual void Write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void Read(const std::byte* from, std::span<std::byte> to) = 0;

  // Paints [begin, end) of the arena (paint.h). Offsets are multiples of four bytes.
  virtual void Paint(size_t begin, size_t end) = 0;
  // Bytes from `begin` to the last word in [begin, end) that is not paint. Waits.
  virtual size_t UsedBytes(size_t begin, size_t end) = 0;

  // Runs the work, which must be the same in every call with this key (keys count from 0). A device
  // that can record work enqueues its pieces only the first time. Returns whether it recorded them
  // now, for which it waits and takes longer.
  virtual bool Replay(size_t key, const Work& work) = 0;
  // Whether Replay runs pieces concurrently.
  virtual bool runs_side_by_side() const { return RunsSideBySide(kind()); }
  // Calls enqueue(step) for each element of `seconds` and adds the time it took. Waits.
  virtual void Time(FunctionRef<void(size_t step)> enqueue, std::span<double> seconds) = 0;

  virtual DeviceMark Mark() = 0;
  // Waits for all work that was enqueued before the mark.
  virtual void Wait(DeviceMark mark) = 0;
  virtual void Synchronize() = 0;
  // How many runs the host may enqueue before it reads the results of the first.
  virtual size_t runs_in_flight() const = 0;

  // Must be destroyed before the device; its destructor waits for work that may use it. Throws
  // std::bad_alloc if there is not enough memory, as operator new does.
  virtual std::unique_ptr<HostMemory> AllocateHost(size_t size_bytes) = 0;
  // Queries the driver.
  virtual DeviceMemory memory() const = 0;
  // Calls so far that allocated or freed device memory or page-locked memory.
  virtual int64_t allocation_calls() const = 0;
  // The stream that CUDA kernels launch on; null on other devices.
  virtual CUstream_st* stream() const { return nullptr; }
};

// Opens a device and allocates its arena. kBadInput if this program or machine has no such device,
// kFailed if there is not enough memory.
Result<std::unique_ptr<Device>> OpenDevice(DeviceKind kind, size_t arena_bytes);

// Checks, without allocating anything, whether OpenDevice could open the device.
Result<void> CheckDevice(DeviceKind kind);
// Checks that this program has kernels for the device.
Result<void> CheckDeviceIsBuilt(DeviceKind kind);

}  // namespace thimble
