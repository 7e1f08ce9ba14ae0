// A stack on which a function runs until it suspends itself, and continues when it is resumed.
#pragma once

#include <cstddef>

namespace gpu_emulator {

// For all fibers of the program: only one OS thread at a time may use them.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume begins to run `body(argument)`. Requires a fiber that is new or has ended.
  void Begin(void (*body)(void*), void* argument);
  // Runs until the body suspends or ends; returns whether it has ended. Not called by a fiber.
  bool Resume();
  // Called by the body: continues the caller of Resume.
  static void Suspend();
  // For ThreadSanitizer.
  void* traced() const { return traced_; }

 private:
  [[noreturn]] static void Run();
  void SwitchBack(bool for_ever);

  std::byte* stack_ = nullptr;  // behind an inaccessible page
  void* place_ = nullptr;       // where it continues: its stack pointer
  void* fake_stack_ = nullptr;  // of AddressSanitizer
  void* traced_ = nullptr;      // of ThreadSanitizer
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ended_ = true;
};

}  // namespace gpu_emulator
