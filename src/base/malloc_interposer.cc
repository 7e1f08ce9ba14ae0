// Replaces malloc, its relatives and mmap for the program that links this file, to count the calls;
// see allocation_counter.h. The C library's own entry points do the allocating.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "thimble/base/allocation_counter.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// Sanitizers replace malloc themselves; they offer a hook instead.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {

void CountAllocation(const volatile void* /*pointer*/, size_t size) {
  auto& tally = thimble::internal::Tally();
  tally.heap_calls.fetch_add(1, std::memory_order_relaxed);
  tally.heap_bytes.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
}
void IgnoreFree(const volatile void* /*pointer*/) {}

const bool installed = [] {
  __sanitizer_install_malloc_and_free_hooks(&CountAllocation, &IgnoreFree);
  thimble::internal::Tally().active.store(true, std::memory_order_relaxed);
  return true;
}();

}  // namespace

#else

namespace {

void Count(size_t size) {
  auto& tally = thimble::internal::Tally();
  tally.active.store(true, std::memory_order_relaxed);
  tally.heap_calls.fetch_add(1, std::memory_order_relaxed);
  tally.heap_bytes.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
}

}  // namespace

extern "C" {

// glibc's implementations under their second names. NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(size_t size) {
  Count(size);
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  Count(count * size);
  return __libc_calloc(count, size);
}

void* realloc(void* pointer, size_t size) {
  Count(size);
  return __libc_realloc(pointer, size);
}

void* memalign(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** pointer, size_t alignment, size_t size) {
  Count(size);
  void* block = __libc_memalign(alignment, size);
  if (block == nullptr) return ENOMEM;
  *pointer = block;
  return 0;
}

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  thimble::internal::Tally().map_calls.fetch_add(1, std::memory_order_relaxed);
  // NOLINTNEXTLINE: the system call returns an address as a long
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

}  // extern "C"

#endif
