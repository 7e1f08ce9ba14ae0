#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thimble/device/device.h"

namespace thimble {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(OpenDevice, TheCpuIsAlwaysThere) {
  EXPECT_TRUE(CheckDevice(DeviceKind::kCpu).ok());
  EXPECT_TRUE(CheckDeviceIsBuilt(DeviceKind::kCpu).ok());
  EXPECT_EQ(OpenDevice(DeviceKind::kCpu, 128).value()->arena().size(), 128U);
}

// On any machine and build: a device, or an error message.
TEST(OpenDevice, CudaIsThereOrSaysWhatIsMissing) {
  const auto device = OpenDevice(DeviceKind::kCuda, 128);
  EXPECT_EQ(device.ok(), CheckDevice(DeviceKind::kCuda).ok());
  if (device.ok()) {
    EXPECT_EQ((*device)->kind(), DeviceKind::kCuda);
    return;
  }
  EXPECT_EQ(device.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(device.error().message, HasSubstr("--device cuda: "));
  EXPECT_THAT(device.error().message,
              AnyOf(HasSubstr("built without CUDA"), HasSubstr("no CUDA device"),
                    HasSubstr("compute capability")));
  EXPECT_EQ(device.error().message, CheckDevice(DeviceKind::kCuda).error().message);
}

}  // namespace
}  // namespace thimble
