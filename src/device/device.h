// Device: the machine that a program's plans run on: its arena, the way in and out of it, and how
// work is enqueued. The executor is the same code for every device.
//
// Work is done in the order in which it is asked for, and may still be under way when a call
// returns: Wait and Synchronize say when it is done. On the CPU everything is done at once.
//
//   device->Write(address, {host, 4});            // host stays as it is ...
//   device->Replay(plan, {steps, run the i-th step, what it must wait for});
//   device->Read(result_address, {result, 4});
//   const DeviceMark mark = device->Mark();
//   ...                                           // the host does something else
//   device->Wait(mark);                           // ... until here; now result is there
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "thimble/base/function_ref.h"
#include "thimble/base/result.h"
#include "thimble/device/device_kind.h"

struct CUstream_st;  // a CUDA stream, as its runtime calls it

namespace thimble {

// A point in the order of the work; later ones are larger.
using DeviceMark = uint64_t;

// Work in pieces, which are enqueued in order. A piece waits for those that it names and for
// whatever these waited for; a device may run all others side by side with it.
struct Work {
  size_t pieces = 0;
  FunctionRef<void(size_t piece)> enqueue;
  // Earlier pieces. Asked for only where runs_side_by_side.
  FunctionRef<std::span<const size_t>(size_t piece)> after;
};

// What a device took beside the arena, as its driver says. All zero on the CPU.
struct DeviceMemory {
  int64_t context_bytes = 0;  // in use before our first allocation: context, code, other programs
  int64_t driver_bytes = 0;   // in use now, with the context
  int64_t graph_bytes = 0;    // of that: recorded steps
  int64_t pinned_bytes = 0;   // host memory that the device reads and writes itself, now
  int64_t pinned_peak_bytes = 0;
};

// Memory of the host that the device copies from and to without a detour.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 protected:
  HostMemory() = default;
  std::span<std::byte> bytes_;  // 64-byte aligned, all zero at first
};

class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;

  // The one block that was allocated, of exactly the planned size. Only where it is memory of the
  // host may its addresses be used directly.
  virtual std::span<std::byte> arena() const = 0;
  virtual bool arena_is_host_memory() const = 0;
  // Bytes of the arena that are backed by memory now.
  virtual int64_t ArenaResidentBytes() const = 0;

  // Copy between the host and addresses of the arena, in order with all other work. The memory of
  // the host must stay as it is until the copy is done.
  virtual void Write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void Read(const std::byte* from, std::span<std::byte> to) = 0;

  // Paints [begin, end) of the arena (paint.h). Offsets are multiples of four bytes.
  virtual void Paint(size_t begin, size_t end) = 0;
  // Bytes from `begin` to the last word in [begin, end) that is not paint. Waits.
  virtual size_t UsedBytes(size_t begin, size_t end) = 0;

  // Does the work, which must be the same in every call with this key (the keys count from 0). A
  // device that can record it enqueues its pieces at the first time only.
  virtual void Replay(size_t key, const Work& work) = 0;
  // Whether Replay runs pieces side by side.
  virtual bool runs_side_by_side() const { return RunsSideBySide(kind()); }
  // Calls enqueue(step) for each element of `seconds` and adds how long it took. Waits.
  virtual void Time(FunctionRef<void(size_t step)> enqueue, std::span<double> seconds) = 0;

  virtual DeviceMark Mark() = 0;
  // Waits for all work that was enqueued before the mark.
  virtual void Wait(DeviceMark mark) = 0;
  virtual void Synchronize() = 0;
  // How many runs the host may enqueue before it looks at the results of the first.
  virtual size_t runs_in_flight() const = 0;

  // Must be given back before the device is closed; waits for work that may use it. Throws
  // std::bad_alloc where there is no more, as the heap does.
  virtual std::unique_ptr<HostMemory> AllocateHost(size_t size_bytes) = 0;
  // Asks the driver.
  virtual DeviceMemory memory() const = 0;
  // Calls so far that took or returned memory of the device or memory that it reads itself.
  virtual int64_t allocation_calls() const = 0;
  // Where kernels of CUDA launch; null elsewhere.
  virtual CUstream_st* stream() const { return nullptr; }
};

// Opens a device and allocates its arena. kBadInput where this program or this machine has no such
// device, kFailed where there is not enough memory.
Result<std::unique_ptr<Device>> OpenDevice(DeviceKind kind, size_t arena_bytes);

// Whether OpenDevice could open one, found out without allocating anything.
Result<void> CheckDevice(DeviceKind kind);
// Whether this program has kernels for it.
Result<void> CheckDeviceIsBuilt(DeviceKind kind);

}  // namespace thimble
