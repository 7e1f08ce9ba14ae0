#include "tests/support/gpu_emulator/shared_memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/gpu_emulator/block.h"
#include "tests/support/gpu_emulator/races.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace gpu_emulator {
namespace {

constexpr size_t kPageBytes = 4096;
// Dynamic memory comes first, then the variables of all kernels. Only used pages take memory.
constexpr size_t kRangeBytes = size_t{256} << 20;
constexpr size_t kDynamicBytes = (kMaxSharedBytes + kPageBytes) / kPageBytes * kPageBytes;

uint64_t block = 0;
size_t variable_bytes = 0;  // of the block

std::byte* Map(void* at, size_t size_bytes, int flags) {
  void* memory = mmap(at, size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("GPU emulator: cannot allocate shared memory");
    std::abort();
  }
  return static_cast<std::byte*>(memory);
}

std::byte* Range() {
  static std::byte* const range = [] {
    std::byte* memory = Map(nullptr, kRangeBytes, 0);
#ifdef __SANITIZE_ADDRESS__
    __asan_poison_memory_region(memory, kRangeBytes);
#endif
    return memory;
  }();
  return range;
}

// Fills with NaN, unseen by sanitizers.
void Clear(void* begin, size_t size_bytes) {
  if (size_bytes == 0) return;
#ifdef THIMBLE_EMULATOR_FINDS_RACES
  // New pages, of which ThreadSanitizer knows no accesses: those of the block before do not count.
  races::BeginUnseen();
  Map(begin, (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes, MAP_FIXED);
  races::EndUnseen();
#endif
  asm volatile("rep stosb" : "+D"(begin), "+c"(size_bytes) : "a"(0xFF) : "memory");
}

}  // namespace

SharedVariable::SharedVariable(size_t size_bytes) : size_bytes_(size_bytes) {
  // Each has pages of its own (Clear); what remains of them is inaccessible with AddressSanitizer.
  static size_t next = kDynamicBytes;
  place_ = Range() + next;
  next += (size_bytes / kPageBytes + 1) * kPageBytes;
  if (next > kRangeBytes) Fail("the program has too many shared variables");
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(place_, size_bytes);
#endif
}

void SharedVariable::Enter() {
  if (block_ == block) return;
  block_ = block;
  Clear(place_, size_bytes_);
  variable_bytes += size_bytes_;
  if (variable_bytes > kMaxStaticSharedBytes) {
    Fail("the shared variables of a block take more than 48 KiB");
  }
}

std::byte* DynamicShared() { return Range(); }

void BeginSharedMemory(size_t dynamic_bytes) {
  ++block;
  variable_bytes = 0;
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(Range(), dynamic_bytes);
  __asan_poison_memory_region(Range() + dynamic_bytes, kMaxSharedBytes - dynamic_bytes);
#endif
  Clear(Range(), dynamic_bytes);
}

uint32_t SharedAddress(const void* place) {
  return static_cast<uint32_t>(static_cast<const std::byte*>(place) - Range());
}
void* SharedPlace(uint32_t address) { return Range() + address; }

}  // namespace gpu_emulator
