#include "thimble/train/weights/tensor_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace thimble {
namespace {

TEST(TensorLayout, FileShapes) {
  EXPECT_EQ(FileShape({16, 3, 5, 7}, FileLayout::kOhwiToOihw), (Shape{16, 7, 3, 5}));
  EXPECT_EQ(FileShape({16, 3, 5, 7}, FileLayout::kAsStored), (Shape{16, 3, 5, 7}));
  EXPECT_EQ(FileShape({}, FileLayout::kAsStored), Shape());
}

TEST(TensorLayout, OneSliceByHand) {
  // (KH, KW, I) = (1, 2, 3): two positions with three inputs each.
  const std::vector<uint8_t> stored = {11, 12, 13, 21, 22, 23};
  std::vector<uint8_t> file(6);
  const ChannelSlice slice = SliceOf({9, 1, 2, 3}, DType::kU8);
  EXPECT_EQ(slice.size_bytes(), 6U);
  SliceToFile(slice, std::as_bytes(std::span(stored)), std::as_writable_bytes(std::span(file)));
  EXPECT_EQ(file, (std::vector<uint8_t>{11, 21, 12, 22, 13, 23}));
}

// All bit patterns are kept, including signalling NaNs, and every element is moved to the position
// of its indices.
TEST(TensorLayout, MovesEveryElementBitForBit) {
  for (const Shape& shape : {Shape{1, 3, 3, 5}, Shape{2, 1, 1, 8}, Shape{1, 5, 2, 1},
                             Shape{1, 7, 3, 4}, Shape{1, 0, 3, 4}, Shape{1, 3, 3, 0}}) {
    const ChannelSlice slice = SliceOf(shape, DType::kF32);
    const int64_t inputs = shape[3];
    std::vector<uint32_t> stored(static_cast<size_t>(slice.positions * inputs));
    for (size_t i = 0; i < stored.size(); ++i) {
      stored[i] = 0x7f800001U + static_cast<uint32_t>(i) * 0x01000193U;
    }
    std::vector<uint32_t> file(stored.size(), 0xdeadbeefU);
    std::vector<uint32_t> back(stored.size(), 0xdeadbeefU);
    SliceToFile(slice, std::as_bytes(std::span(stored)), std::as_writable_bytes(std::span(file)));
    for (int64_t position = 0; position < slice.positions; ++position) {
      for (int64_t input = 0; input < inputs; ++input) {
        EXPECT_EQ(file[static_cast<size_t>(input * slice.positions + position)],
                  stored[static_cast<size_t>(position * inputs + input)]);
      }
    }
    SliceFromFile(slice, std::as_bytes(std::span(file)), std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, stored);
  }
}

TEST(TensorLayout, OtherRanksAreProgrammerErrors) {
  EXPECT_DEATH((void)FileShape({3, 3, 5}, FileLayout::kOhwiToOihw), "is not \\(O, KH, KW, I\\)");
  EXPECT_DEATH((void)SliceOf({3, 3}, DType::kF32), "is not \\(O, KH, KW, I\\)");
}

TEST(TensorLayout, WrongBuffersAreProgrammerErrors) {
  const ChannelSlice slice = SliceOf({1, 2, 2, 2}, DType::kU8);
  std::vector<std::byte> right(8);
  std::vector<std::byte> wrong(7);
  EXPECT_DEATH(SliceToFile(slice, right, wrong), "the slice has 8 bytes, the buffers have 8 and 7");
  EXPECT_DEATH(SliceFromFile(slice, wrong, right),
               "the slice has 8 bytes, the buffers have 7 and 8");
}

}  // namespace
}  // namespace thimble
