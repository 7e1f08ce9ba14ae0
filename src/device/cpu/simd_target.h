// Which SIMD instruction set the CPU kernels use. Chosen once from what the machine has; can be
// pinned, because results are the same bits per target only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

// Names of the compiled targets that this machine can run, best first: "avx512", "avx2", "sse4", …
std::vector<std::string> SupportedSimdTargets();

// All that kernels were compiled for, best first.
std::vector<std::string> CompiledSimdTargets();

// The target that kernels use now.
std::string ActiveSimdTarget();

// Makes kernels use this target from now on; "auto" goes back to the best. Not while kernels run.
Result<void> PinSimdTarget(std::string_view name);

}  // namespace thimble
