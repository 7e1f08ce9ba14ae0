#include "tests/support/gpu_emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Sanitizers follow the switches from stack to stack.
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef THIMBLE_EMULATOR_FINDS_RACES
#include <sanitizer/tsan_interface.h>
#endif

#ifndef __x86_64__
#error "the GPU emulator switches stacks on x86-64 only"
#endif

// void gpu_emulator_switch(void** from, void* to): saves the registers that a function must keep
// and continues on the other stack, which was left in the same way.
asm(R"(
.text
.type gpu_emulator_switch, @function
gpu_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gpu_emulator_switch, .-gpu_emulator_switch
)");
extern "C" void gpu_emulator_switch(void** from, void* to);

namespace gpu_emulator {
namespace {

// More than kernels need, also with the larger frames of sanitizers. Only touched pages take
// memory.
constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kPageBytes = 4096;
constexpr size_t kSavedRegisters = 6;

Fiber* running = nullptr;

// The stack of whoever resumes fibers.
struct Resumer {
  void* place = nullptr;
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  size_t stack_bytes = 0;
  void* traced = nullptr;
} resumer;

}  // namespace

Fiber::Fiber() {
  void* memory = mmap(nullptr, kPageBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPageBytes, PROT_NONE) != 0) {
    std::perror("GPU emulator: cannot allocate the stack of a thread");
    std::abort();
  }
  stack_ = static_cast<std::byte*>(memory) + kPageBytes;
#ifdef THIMBLE_EMULATOR_FINDS_RACES
  traced_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef THIMBLE_EMULATOR_FINDS_RACES
  __tsan_destroy_fiber(traced_);
#endif
  munmap(stack_ - kPageBytes, kPageBytes + kStackBytes);
}

void Fiber::Begin(void (*body)(void*), void* argument) {
  body_ = body;
  argument_ = argument;
  ended_ = false;
  // As gpu_emulator_switch leaves a stack: registers, then the address to return to, which must be
  // at a multiple of 16 bytes.
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(&Fiber::Run);
  top[1] = nullptr;
  for (size_t i = 1; i <= kSavedRegisters; ++i) *(top - i) = nullptr;
  place_ = top - kSavedRegisters;
}

bool Fiber::Resume() {
  running = this;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&resumer.fake_stack, stack_, kStackBytes);
#endif
#ifdef THIMBLE_EMULATOR_FINDS_RACES
  resumer.traced = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(traced_, __tsan_switch_to_fiber_no_sync);
#endif
  gpu_emulator_switch(&resumer.place, place_);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(resumer.fake_stack, nullptr, nullptr);
#endif
  running = nullptr;
  return ended_;
}

void Fiber::SwitchBack([[maybe_unused]] bool for_ever) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_stack_, resumer.stack,
                                 resumer.stack_bytes);
#endif
#ifdef THIMBLE_EMULATOR_FINDS_RACES
  __tsan_switch_to_fiber(resumer.traced, __tsan_switch_to_fiber_no_sync);
#endif
  gpu_emulator_switch(&place_, resumer.place);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack_, &resumer.stack, &resumer.stack_bytes);
#endif
}

void Fiber::Suspend() { running->SwitchBack(/*for_ever=*/false); }

void Fiber::Run() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &resumer.stack, &resumer.stack_bytes);
#endif
  Fiber* self = running;
  self->body_(self->argument_);
  self->ended_ = true;
  self->SwitchBack(/*for_ever=*/true);
  std::abort();  // never resumed
}

}  // namespace gpu_emulator
