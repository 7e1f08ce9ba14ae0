#include "tests/support/test_paths.h"

#include <cstdlib>

#ifndef THIMBLE_INJECTOR
#define THIMBLE_INJECTOR ""
#endif
#ifndef THIMBLE_STEP_BENCH
#define THIMBLE_STEP_BENCH ""
#endif
#ifndef THIMBLE_KERNEL_BENCH
#define THIMBLE_KERNEL_BENCH ""
#endif

namespace thimble {
namespace {

std::string FromEnvironment(const char* name, const char* as_built) {
  const char* value = std::getenv(name);
  return value == nullptr ? as_built : value;
}

}  // namespace

std::string ThimbleBinary() { return FromEnvironment("THIMBLE_BINARY", THIMBLE_BINARY); }
std::string ExamplesFolder() { return THIMBLE_SOURCE_FOLDER "/examples"; }
std::string DocsFolder() { return THIMBLE_SOURCE_FOLDER "/docs"; }
std::string GoldenFolder() {
  return FromEnvironment("THIMBLE_GOLDEN_FOLDER", THIMBLE_SOURCE_FOLDER "/tests/golden");
}
std::string FaultInjector() { return FromEnvironment("THIMBLE_INJECTOR", THIMBLE_INJECTOR); }
std::string StepBench() { return THIMBLE_STEP_BENCH; }
std::string KernelBench() { return THIMBLE_KERNEL_BENCH; }

}  // namespace thimble
