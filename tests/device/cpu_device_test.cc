#include "thimble/device/cpu/cpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "thimble/device/paint.h"

namespace thimble {
namespace {

TEST(CpuDevice, TheArenaIsMemoryOfTheHost) {
  const auto device = OpenCpuDevice(256).value();
  EXPECT_EQ(device->kind(), DeviceKind::kCpu);
  EXPECT_TRUE(device->arena_is_host_memory());
  EXPECT_EQ(device->arena().size(), 256U);
  EXPECT_EQ(device->stream(), nullptr);
  EXPECT_EQ(device->memory().driver_bytes, 0);
}

TEST(CpuDevice, CopiesAtOnce) {
  const auto device = OpenCpuDevice(256).value();
  const std::vector<std::byte> in(12, std::byte{7});
  std::vector<std::byte> out(12);
  device->Write(device->arena().data() + 64, in);
  device->Read(device->arena().data() + 64, out);
  EXPECT_EQ(out, in);
  device->Write(nullptr, {});
  device->Read(nullptr, {});
}

TEST(CpuDevice, FindsTheLastWordThatIsNotPaint) {
  const auto device = OpenCpuDevice(256).value();
  device->Paint(0, 256);
  EXPECT_EQ(device->UsedBytes(0, 256), 0U);
  device->arena()[100] = std::byte{1};
  EXPECT_EQ(device->UsedBytes(0, 256), 104U);
  EXPECT_EQ(device->UsedBytes(64, 256), 40U);
  EXPECT_EQ(device->UsedBytes(104, 256), 0U);
  device->Paint(100, 104);
  EXPECT_EQ(device->UsedBytes(0, 256), 0U);
}

TEST(CpuDevice, ReplayCallsEachPieceInTurn) {
  const auto device = OpenCpuDevice(64).value();
  std::vector<size_t> pieces;
  const auto after = [](size_t /*piece*/) -> std::span<const size_t> {
    ADD_FAILURE() << "nothing runs side by side";
    return {};
  };
  for (int i = 0; i < 2; ++i) {
    device->Replay(0, {3, [&](size_t piece) { pieces.push_back(piece); }, after});
  }
  EXPECT_THAT(pieces, testing::ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(CpuDevice, TimesEachStep) {
  const auto device = OpenCpuDevice(64).value();
  std::vector<size_t> steps;
  std::vector<double> seconds(3, 1.0);
  device->Time([&](size_t step) { steps.push_back(step); }, seconds);
  EXPECT_THAT(steps, testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(seconds, testing::Each(testing::Ge(1.0)));  // added to
}

TEST(CpuDevice, HostMemoryIsZeroAndAligned) {
  const auto device = OpenCpuDevice(64).value();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}}) {
    const auto memory = device->AllocateHost(size);
    EXPECT_EQ(memory->bytes().size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->bytes().data()) % 64, 0U);
    EXPECT_THAT(memory->bytes(), testing::Each(std::byte{0}));
  }
}

TEST(CpuDevice, AnArenaThatCannotBeMapped) {
  const auto device = OpenCpuDevice(size_t{1} << 60);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, ErrorKind::kFailed);
}

}  // namespace
}  // namespace thimble
