// Which SIMD instruction set the CPU kernels use. Chosen once from what the machine supports; can
// be pinned, because results are bit-identical only for the same target.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

// Names of the compiled targets that this machine can run, best first: "amx", "avx512bf16",
// "avx512", "avx2", "sse4", …
std::vector<std::string> SupportedSimdTargets();

// All targets that kernels were compiled for, best first.
std::vector<std::string> CompiledSimdTargets();

// The target that kernels use now.
std::string ActiveSimdTarget();

// Makes kernels use this target from now on; "auto" selects the best. Must not be called while
// kernels run.
Result<void> PinSimdTarget(std::string_view name);

// Whether the active target multiplies pairs of bf16 numbers (gemm/pairs.h): "avx512bf16", which
// otherwise runs the code of "avx512", and "amx".
bool MultipliesPairs();

// Whether it multiplies them in tiles (gemm/tiles.h): "amx", which otherwise runs the code of
// "avx512bf16".
bool MultipliesTiles();

// Whether this compiler makes code for it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
inline constexpr bool kCompilesPairProducts = true;
#else
inline constexpr bool kCompilesPairProducts = false;
#endif

}  // namespace thimble
