#include "thimble/exec/lifetime_guard.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace thimble {
namespace {

#if defined(__SANITIZE_ADDRESS__)
void Close(std::span<std::byte> bytes) { ASAN_POISON_MEMORY_REGION(bytes.data(), bytes.size()); }
void Open(std::span<std::byte> bytes) { ASAN_UNPOISON_MEMORY_REGION(bytes.data(), bytes.size()); }
constexpr bool kGuards = true;
#else
void Close(std::span<std::byte> /*bytes*/) {}
void Open(std::span<std::byte> /*bytes*/) {}
constexpr bool kGuards = false;
#endif

std::span<std::byte> BytesOf(std::span<std::byte> arena, const Placement& placement) {
  return arena.subspan(placement.offset, placement.size_bytes);
}

}  // namespace

LifetimeGuard::LifetimeGuard(std::span<std::byte> arena, const Plan& plan)
    : arena_(arena), plan_(plan) {
  if (!kGuards) return;
  Close(arena_.subspan(plan_.residents.end_bytes));
  BeforeStep(0);
}

LifetimeGuard::~LifetimeGuard() { Open(arena_); }

void LifetimeGuard::BeforeStep(size_t step) {
  if (!kGuards) return;
  for (const Placement& placement : plan_.placements) {
    if (!placement.resident && placement.live.first == step) Open(BytesOf(arena_, placement));
  }
}

void LifetimeGuard::AfterStep(size_t step) {
  if (!kGuards) return;
  for (const Placement& placement : plan_.placements) {
    if (!placement.resident && placement.live.end == step + 1) Close(BytesOf(arena_, placement));
  }
}

}  // namespace thimble
