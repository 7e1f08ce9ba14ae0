#include "thimble/device/cpu/simd_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "thimble/device/cpu/gemm/tiles.h"

namespace thimble {
namespace {

struct Target {
  std::string_view name;
  int64_t bit;
  bool multiplies_pairs = false;
  bool multiplies_tiles = false;
};
constexpr std::array kTargets = {
    Target{"amx", HWY_AVX3, true, true},
    Target{"avx512bf16", HWY_AVX3, true},
    Target{"avx512", HWY_AVX3},
    Target{"avx2", HWY_AVX2},
    Target{"sse4", HWY_SSE4},
    Target{"neon", HWY_NEON},
    Target{"emu128", HWY_EMU128},
    Target{"scalar", HWY_SCALAR},
};

bool IsCompiled(const Target& target) {
  return (HWY_TARGETS & target.bit) != 0 && (kCompilesPairProducts || !target.multiplies_pairs);
}

bool MachineMultipliesPairs() {
#if HWY_ARCH_X86_64
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool IsSupported(const Target& target) {
  return IsCompiled(target) && (hwy::SupportedTargets() & target.bit) != 0 &&
         (!target.multiplies_pairs || MachineMultipliesPairs()) &&
         (!target.multiplies_tiles || HasTileKernels());
}

std::vector<std::string> NamesOf(bool (*is_included)(const Target&)) {
  std::vector<std::string> names;
  for (const Target& target : kTargets) {
    if (is_included(target)) names.emplace_back(target.name);
  }
  return names;
}

const Target& BestTarget() {
  static const Target& best = *std::ranges::find_if(kTargets, &IsSupported);
  return best;
}

// Null: the best one.
const Target*& Pinned() {
  static const Target* target = nullptr;
  return target;
}

const Target& ActiveTarget() { return Pinned() == nullptr ? BestTarget() : *Pinned(); }

}  // namespace

std::vector<std::string> SupportedSimdTargets() { return NamesOf(&IsSupported); }
std::vector<std::string> CompiledSimdTargets() { return NamesOf(&IsCompiled); }
std::string ActiveSimdTarget() { return std::string(ActiveTarget().name); }
bool MultipliesPairs() { return ActiveTarget().multiplies_pairs; }
bool MultipliesTiles() { return ActiveTarget().multiplies_tiles; }

Result<void> PinSimdTarget(std::string_view name) {
  if (name == "auto") {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    Pinned() = nullptr;
    return {};
  }
  for (const Target& target : kTargets) {
    if (target.name != name || !IsSupported(target)) continue;
    hwy::GetChosenTarget().Update(target.bit);
    Pinned() = &target;
    return {};
  }
  return BadInput(fmt::format("--simd {}: not available; expected auto, {}", name,
                              fmt::join(SupportedSimdTargets(), ", ")));
}

}  // namespace thimble
