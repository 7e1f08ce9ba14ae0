#include "thimble/device/cpu/cpu_device.h"

#include <chrono>
#include <cstring>
#include <new>

#include "thimble/device/paint.h"

namespace thimble {
namespace {

class HeapMemory final : public HostMemory {
 public:
  explicit HeapMemory(size_t size_bytes) {
    void* memory = ::operator new(size_bytes, kAlignment);
    std::memset(memory, 0, size_bytes);
    bytes_ = {static_cast<std::byte*>(memory), size_bytes};
  }
  ~HeapMemory() override { ::operator delete(bytes_.data(), kAlignment); }

 private:
  static constexpr auto kAlignment = std::align_val_t{64};
};

}  // namespace

// An empty span may have a null address, which memcpy must not get.
void CpuDevice::Write(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

void CpuDevice::Read(const std::byte* from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

void CpuDevice::Paint(size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += kPaintBytes) {
    std::memcpy(arena().data() + at, &kPaint, kPaintBytes);
  }
}

size_t CpuDevice::UsedBytes(size_t begin, size_t end) {
  for (size_t at = end; at > begin; at -= kPaintBytes) {
    uint32_t word = 0;
    std::memcpy(&word, arena().data() + at - kPaintBytes, kPaintBytes);
    if (word != kPaint) return at - begin;
  }
  return 0;
}

void CpuDevice::Time(FunctionRef<void(size_t)> enqueue, std::span<double> seconds) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point before = Clock::now();
  for (size_t step = 0; step < seconds.size(); ++step) {
    enqueue(step);
    const Clock::time_point now = Clock::now();
    seconds[step] += std::chrono::duration<double>(now - before).count();
    before = now;
  }
}

std::unique_ptr<HostMemory> CpuDevice::AllocateHost(size_t size_bytes) {
  return std::make_unique<HeapMemory>(size_bytes);
}

Result<std::unique_ptr<Device>> OpenCpuDevice(size_t arena_bytes) {
  THIMBLE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(arena_bytes));
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(std::move(arena)));
}

}  // namespace thimble
