// Paths of programs and files for the tests. Environment variables override those of the build.
#pragma once

#include <string>

namespace thimble {

std::string ThimbleBinary();  // THIMBLE_BINARY
std::string ExamplesFolder();
std::string DocsFolder();
std::string GoldenFolder();   // THIMBLE_GOLDEN_FOLDER
std::string FaultInjector();  // THIMBLE_INJECTOR; empty if not built
std::string StepBench();      // empty if not built, like the next one
std::string KernelBench();

}  // namespace thimble
