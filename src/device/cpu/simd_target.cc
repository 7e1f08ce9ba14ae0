#include "thimble/device/cpu/simd_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hwy/highway.h>

#include <array>

namespace thimble {
namespace {

struct Target {
  std::string_view name;
  int64_t bit;
};
constexpr std::array kTargets = {
    Target{"avx512", HWY_AVX3}, Target{"avx2", HWY_AVX2},     Target{"sse4", HWY_SSE4},
    Target{"neon", HWY_NEON},   Target{"emu128", HWY_EMU128}, Target{"scalar", HWY_SCALAR},
};

int64_t MachineTargets() { return hwy::SupportedTargets() & HWY_TARGETS; }

std::vector<std::string> NamesOf(int64_t targets) {
  std::vector<std::string> names;
  for (const Target& target : kTargets) {
    if ((targets & target.bit) != 0) names.emplace_back(target.name);
  }
  return names;
}

std::string& Pinned() {
  static std::string name;
  return name;
}

}  // namespace

std::vector<std::string> SupportedSimdTargets() { return NamesOf(MachineTargets()); }
std::vector<std::string> CompiledSimdTargets() { return NamesOf(HWY_TARGETS); }

std::string ActiveSimdTarget() {
  return Pinned().empty() ? SupportedSimdTargets().front() : Pinned();
}

Result<void> PinSimdTarget(std::string_view name) {
  if (name == "auto") {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    Pinned().clear();
    return {};
  }
  for (const Target& target : kTargets) {
    if (target.name != name || (MachineTargets() & target.bit) == 0) continue;
    hwy::GetChosenTarget().Update(target.bit);
    Pinned() = std::string(name);
    return {};
  }
  return BadInput(fmt::format("--simd {}: not available; expected auto, {}", name,
                              fmt::join(SupportedSimdTargets(), ", ")));
}

}  // namespace thimble
