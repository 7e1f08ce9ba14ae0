// The kinds of devices that kernels are written for.
#pragma once

#include <cstdint>
#include <string_view>

namespace thimble {

enum class DeviceKind : uint8_t { kCpu, kCuda };

constexpr std::string_view Name(DeviceKind device) {
  return device == DeviceKind::kCpu ? "cpu" : "cuda";
}

// Whether steps of a plan that share no memory run concurrently.
constexpr bool RunsSideBySide(DeviceKind device) { return device == DeviceKind::kCuda; }

}  // namespace thimble
