// LifetimeGuard: in AddressSanitizer builds, makes the bytes of a buffer inaccessible while it is
// not alive. Inside one arena the sanitizer cannot see overruns; this makes them visible again. In
// other builds it does nothing.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/plan/plan.h"

namespace thimble {

class LifetimeGuard {
 public:
  // Makes everything above the residents that is not alive at the first step inaccessible; the
  // destructor makes all of it accessible again. Both arguments must outlive the guard.
  LifetimeGuard(std::span<std::byte> arena, const Plan& plan);
  ~LifetimeGuard();
  LifetimeGuard(const LifetimeGuard&) = delete;
  LifetimeGuard& operator=(const LifetimeGuard&) = delete;

  void BeforeStep(size_t step);
  void AfterStep(size_t step);

 private:
  std::span<std::byte> arena_;
  const Plan& plan_;
};

}  // namespace thimble
