// Where the tests find programs and files. Programs that were built elsewhere are named by
// environment variables.
#pragma once

#include <string>

namespace thimble {

std::string ThimbleBinary();  // THIMBLE_BINARY
std::string ExamplesFolder();
std::string DocsFolder();
std::string GoldenFolder();   // THIMBLE_GOLDEN_FOLDER
std::string FaultInjector();  // THIMBLE_INJECTOR; empty where none was built
std::string StepBench();      // empty where none was built, and so is the next
std::string KernelBench();

}  // namespace thimble
