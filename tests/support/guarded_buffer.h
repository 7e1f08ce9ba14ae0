// GuardedBuffer: memory for a kernel's tensor or scratch that detects writes outside of it. Reads
// outside give wrong results: the bytes there are huge numbers. Under ASan both end the process.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) static_cast<void>(0)
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thimble {

class GuardedBuffer {
 public:
  static constexpr size_t kGuardBytes = 64;

  // 64-byte aligned. Every byte starts as 0xFF, which makes floats and doubles NaN.
  explicit GuardedBuffer(size_t size_bytes)
      : size_bytes_(size_bytes), storage_(size_bytes + 2 * kGuardBytes + kAlignment, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuardBytes;
    offset_ = kGuardBytes + (kAlignment - address % kAlignment) % kAlignment;
    std::fill_n(data(), size_bytes, std::byte{0xFF});
    ASAN_POISON_MEMORY_REGION(storage_.data(), offset_);
    ASAN_POISON_MEMORY_REGION(data() + size_bytes, storage_.size() - offset_ - size_bytes);
  }
  ~GuardedBuffer() { OpenGuards(); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  GuardedBuffer(GuardedBuffer&&) = default;

  std::byte* data() { return storage_.data() + offset_; }
  const std::byte* data() const { return storage_.data() + offset_; }
  std::span<std::byte> bytes() { return {data(), size_bytes_}; }
  std::span<const std::byte> bytes() const { return {data(), size_bytes_}; }
  // With kGuardBytes of guard on each side, for copies on another device.
  std::span<std::byte> bytes_and_guards() {
    OpenGuards();
    return {data() - kGuardBytes, size_bytes_ + 2 * kGuardBytes};
  }

  // Whether the last 4-byte word was written (to anything but the bytes it started with).
  bool LastWordWritten() const {
    return size_bytes_ < 4 || std::any_of(data() + size_bytes_ - 4, data() + size_bytes_,
                                          [](std::byte byte) { return byte != std::byte{0xFF}; });
  }

  // Whether nothing was written before or after the buffer.
  bool GuardsIntact() const {
    OpenGuards();
    const auto intact = [](std::byte byte) { return byte == kGuard; };
    return std::all_of(storage_.data(), data(), intact) &&
           std::all_of(data() + size_bytes_, storage_.data() + storage_.size(), intact);
  }

 private:
  static constexpr size_t kAlignment = 64;
  // As a float 3.4e38, as an int32 2.1e9: reading them gives very wrong results.
  static constexpr std::byte kGuard{0x7F};

  // Lets ASan allow access to the guards again. (A moved-from buffer has no memory.)
  void OpenGuards() const { ASAN_UNPOISON_MEMORY_REGION(storage_.data(), storage_.size()); }

  size_t size_bytes_;
  std::vector<std::byte> storage_;
  size_t offset_;
};

}  // namespace thimble
