// The CUDA device. Without a GPU these tests are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/cuda_or_skip.h"
#include "thimble/device/device.h"
#include "thimble/device/paint.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// The pieces that a piece of work waits for.
std::span<const size_t> Nothing(size_t /*piece*/) { return {}; }

class CudaDeviceTest : public testing::Test {
 protected:
  static constexpr size_t kArenaBytes = 1 << 20;

  void SetUp() override {
    THIMBLE_CUDA_OR_SKIP();
    auto device = OpenDevice(DeviceKind::kCuda, kArenaBytes);
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(device).value();
  }
  std::byte* At(size_t offset) const { return device_->arena().data() + offset; }
  void WriteWord(size_t offset, uint32_t word) {
    device_->Write(At(offset), std::as_bytes(std::span(&word, 1)));
    device_->Synchronize();
  }
  uint32_t ReadWord(size_t offset) {
    uint32_t word = 0;
    device_->Read(At(offset), std::as_writable_bytes(std::span(&word, 1)));
    device_->Synchronize();
    return word;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceTest, HasOneArenaOfTheSizeAskedFor) {
  EXPECT_EQ(device_->kind(), DeviceKind::kCuda);
  EXPECT_FALSE(device_->name().empty());
  EXPECT_EQ(device_->arena().size(), kArenaBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(At(0)) % 64, 0U);
  EXPECT_EQ(device_->allocation_calls(), 1);
}

// The driver counts the memory of all processes.
class CudaAloneDeviceTest : public CudaDeviceTest {};

TEST_F(CudaAloneDeviceTest, DriverCountsContextAndArena) {
  EXPECT_GE(device_->memory().driver_bytes, device_->memory().context_bytes + int64_t{kArenaBytes});
}

// The driver counts what all processes have.
TEST_F(CudaAloneDeviceTest, CountsWhatRecordedStepsTake) {
  device_->Replay(0, {1, [&](size_t /*piece*/) { device_->Paint(0, 4); }, &Nothing});
  EXPECT_GE(device_->memory().graph_bytes, 0);
}

TEST_F(CudaDeviceTest, ReadsBackWhatWasWritten) {
  std::vector<std::byte> in(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7);
  std::vector<std::byte> out(in.size());
  device_->Write(At(64), in);
  device_->Read(At(64), out);
  device_->Synchronize();
  EXPECT_TRUE(in == out);
  device_->Write(At(0), {});
  device_->Read(At(0), {});
}

TEST_F(CudaDeviceTest, FindsTheLastWordThatIsNotPaint) {
  device_->Paint(0, kArenaBytes);
  EXPECT_EQ(ReadWord(0), kPaint);
  EXPECT_EQ(ReadWord(kArenaBytes - 4), kPaint);
  EXPECT_EQ(device_->UsedBytes(0, kArenaBytes), 0U);
  WriteWord(100, 1);
  WriteWord(40, 2);
  EXPECT_EQ(device_->UsedBytes(0, kArenaBytes), 104U);
  EXPECT_EQ(device_->UsedBytes(64, kArenaBytes), 40U);
  EXPECT_EQ(device_->UsedBytes(104, kArenaBytes), 0U);
  EXPECT_EQ(device_->UsedBytes(104, 104), 0U);
  WriteWord(kArenaBytes - 4, 3);
  EXPECT_EQ(device_->UsedBytes(0, kArenaBytes), kArenaBytes);
  device_->Paint(40, kArenaBytes);
  EXPECT_EQ(device_->UsedBytes(0, kArenaBytes), 0U);
}

// Each word is copied over the next one through the host: only waiting keeps the order.
TEST_F(CudaDeviceTest, PiecesWaitForThoseThatTheyName) {
  constexpr size_t kPieces = 40;
  const auto memory = device_->AllocateHost(kPieces * 4);
  const auto host = [&](size_t i) { return memory->bytes().subspan(i * 4, 4); };
  std::vector<std::vector<size_t>> after(kPieces);
  for (size_t i = 1; i < kPieces; ++i) after[i] = {i - 1};
  for (uint32_t value : {5U, 9U}) {
    WriteWord(0, value);
    for (size_t i = 1; i <= kPieces; ++i) WriteWord(i * 4, 0);
    device_->Replay(0, {kPieces,
                        [&](size_t piece) {
                          device_->Read(At(piece * 4), host(piece));
                          device_->Write(At(piece * 4 + 4), host(piece));
                        },
                        [&](size_t piece) { return std::span<const size_t>(after[piece]); }});
    for (size_t i = 0; i <= kPieces; ++i) EXPECT_EQ(ReadWord(i * 4), value) << i;
  }
}

// Two kernels paint a block of zeros, and copies take it through the host to another block: edges
// between kernels, between copies, and between the two.
TEST_F(CudaDeviceTest, KernelsAndCopiesWaitForEachOther) {
  constexpr size_t kBlocks = 30;
  constexpr size_t kBytes = 8192;
  static_assert(2 * kBlocks * kBytes <= kArenaBytes);
  const auto memory = device_->AllocateHost(kBlocks * kBytes);
  const auto enqueue = [&](size_t piece) {
    const size_t begin = piece / 4 * kBytes;
    const auto host = memory->bytes().subspan(begin, kBytes);
    if (piece % 4 == 0) device_->Paint(begin, begin + kBytes / 2);
    if (piece % 4 == 1) device_->Paint(begin + kBytes / 2, begin + kBytes);
    if (piece % 4 == 2) device_->Read(At(begin), host);
    if (piece % 4 == 3) device_->Write(At(kBlocks * kBytes + begin), host);
  };
  std::vector<std::vector<size_t>> after(4 * kBlocks);
  for (size_t i = 1; i < after.size(); ++i) after[i] = {i - 1};
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::memset(memory->bytes().data(), 0, memory->bytes().size());
    device_->Write(At(0), memory->bytes());
    device_->Write(At(kBlocks * kBytes), memory->bytes());
    device_->Replay(0, {after.size(), enqueue,
                        [&](size_t piece) { return std::span<const size_t>(after[piece]); }});
    EXPECT_EQ(device_->UsedBytes(0, 2 * kBlocks * kBytes), 0U) << repeat;
  }
}

// Pieces without dependencies are all done before the next work.
TEST_F(CudaDeviceTest, WhatFollowsWaitsForAllPieces) {
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 40; ++i) WriteWord(i * 4, 0);
    device_->Replay(
        0, {40, [&](size_t piece) { device_->Paint(piece * 4, piece * 4 + 4); }, &Nothing});
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(ReadWord(i * 4), kPaint) << i;
  }
}

TEST_F(CudaDeviceTest, RecordsOnceAndRepeats) {
  int calls = 0;
  WriteWord(0, 5);
  for (int i = 0; i < 3; ++i) {
    device_->Replay(0, {1,
                        [&](size_t /*piece*/) {
                          ++calls;
                          device_->Paint(0, 4);
                        },
                        &Nothing});
    EXPECT_EQ(ReadWord(0), kPaint) << i;
    WriteWord(0, 5);
  }
  EXPECT_EQ(calls, 1);
  device_->Replay(3, {1, [&](size_t /*piece*/) { device_->Paint(64, 68); }, &Nothing});
  EXPECT_EQ(ReadWord(0), 5U);
  EXPECT_EQ(ReadWord(64), kPaint);
}

TEST_F(CudaDeviceTest, TimesEachStep) {
  std::vector<double> seconds(3, 0.0);
  device_->Time([&](size_t /*step*/) { device_->Paint(0, kArenaBytes); }, seconds);
  EXPECT_THAT(seconds, testing::Each(testing::Gt(0.0)));
  EXPECT_THAT(seconds, testing::Each(testing::Lt(1.0)));
}

TEST_F(CudaDeviceTest, CountsMemoryThatItReadsItself) {
  {
    const auto memory = device_->AllocateHost(1000);
    EXPECT_EQ(memory->bytes().size(), 1000U);
    EXPECT_THAT(memory->bytes(), testing::Each(std::byte{0}));
    EXPECT_EQ(device_->memory().pinned_bytes, 1000);
    EXPECT_EQ(device_->allocation_calls(), 2);
    memory->bytes()[3] = std::byte{9};
    device_->Write(At(0), memory->bytes());
    std::vector<std::byte> out(1000);
    const DeviceMark mark = device_->Mark();
    device_->Wait(mark);
    device_->Read(At(0), out);
    device_->Synchronize();
    EXPECT_EQ(out[3], std::byte{9});
  }
  EXPECT_EQ(device_->memory().pinned_bytes, 0);
  EXPECT_EQ(device_->memory().pinned_peak_bytes, 1000);
}

TEST_F(CudaDeviceTest, AnArenaThatIsTooLarge) {
  const auto device = OpenDevice(DeviceKind::kCuda, size_t{1} << 50);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(device.error().message, HasSubstr("1125899906842624 bytes"));
  EXPECT_THAT(device.error().message, HasSubstr("are free"));
  // And the first one continues.
  device_->Paint(0, 4);
  EXPECT_EQ(ReadWord(0), kPaint);
}

// The driver would give all that is free; recording the second run would then fail.
TEST_F(CudaAloneDeviceTest, AnArenaThatLeavesNothingForRecordedSteps) {
  const std::string refusal = OpenDevice(DeviceKind::kCuda, size_t{1} << 50).error().message;
  const size_t at = refusal.find("where ");
  ASSERT_NE(at, std::string::npos) << refusal;
  const size_t free_bytes = std::stoull(refusal.substr(refusal.find('(', at) + 1));
  constexpr size_t kMiB = 1 << 20;
  const auto device = OpenDevice(DeviceKind::kCuda, free_bytes / kMiB * kMiB - 8 * kMiB);
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(device.error().message, HasSubstr("for recorded steps"));
}

}  // namespace
}  // namespace thimble
