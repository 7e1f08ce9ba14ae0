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

// The machine's targets, whatever is pinned at the moment.
int64_t MachineTargets() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

std::string& Pinned() {
  static std::string name;
  return name;
}

}  // namespace

std::vector<std::string> SupportedSimdTargets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) {
    if ((MachineTargets() & target.bit) != 0) names.emplace_back(target.name);
  }
  return names;
}

std::string ActiveSimdTarget() {
  return Pinned().empty() ? SupportedSimdTargets().front() : Pinned();
}

Result<void> PinSimdTarget(std::string_view name) {
  if (name == "auto") {
    MachineTargets();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
    Pinned().clear();
    return {};
  }
  for (const Target& target : kTargets) {
    if (target.name != name || (MachineTargets() & target.bit) == 0) continue;
    hwy::SetSupportedTargetsForTest(target.bit);
    hwy::GetChosenTarget().Update(target.bit);
    Pinned() = std::string(name);
    return {};
  }
  return BadInput(fmt::format("--simd {}: this machine has auto, {}", name,
                              fmt::join(SupportedSimdTargets(), ", ")));
}

}  // namespace thimble
