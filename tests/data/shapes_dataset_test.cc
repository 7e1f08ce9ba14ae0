#include "thimble/data/shapes_dataset.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "thimble/data/shape_outlines.h"

namespace thimble {
namespace {

constexpr size_t kImageBytes = 32UL * 32 * 3;

std::vector<uint8_t> ReadShape(const ImageDataset& dataset, int64_t index,
                               int32_t* label = nullptr) {
  std::vector<uint8_t> pixels(kImageBytes);
  int32_t read_label = -1;
  EXPECT_TRUE(dataset.Read(index, pixels, read_label).ok());
  if (label != nullptr) *label = read_label;
  return pixels;
}

uint64_t Fingerprint(const std::vector<uint8_t>& bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

TEST(ShapesDatasetTest, ImagesDependOnSeedSplitAndIndexOnly) {
  const ShapesDataset train(1, ShapesSplit::kTrain, 100);
  const ShapesDataset longer(1, ShapesSplit::kTrain, 100000);
  const ShapesDataset test(1, ShapesSplit::kTest, 100);
  const ShapesDataset other_seed(2, ShapesSplit::kTrain, 100);
  EXPECT_EQ(ReadShape(train, 42), ReadShape(longer, 42));
  EXPECT_NE(ReadShape(train, 42), ReadShape(test, 42));
  EXPECT_NE(ReadShape(train, 42), ReadShape(other_seed, 42));
  EXPECT_NE(ReadShape(train, 42), ReadShape(train, 52));
}

TEST(ShapesDatasetTest, TrainAndTestShareNoImage) {
  const ShapesDataset train(1, ShapesSplit::kTrain, 2000);
  const ShapesDataset test(1, ShapesSplit::kTest, 2000);
  std::set<uint64_t> seen;
  for (int64_t i = 0; i < 2000; ++i) {
    EXPECT_TRUE(seen.insert(Fingerprint(ReadShape(train, i))).second);
    EXPECT_TRUE(seen.insert(Fingerprint(ReadShape(test, i))).second);
  }
}

TEST(ShapesDatasetTest, ClassesAreBalanced) {
  const ShapesDataset dataset(1, ShapesSplit::kTrain, 100);
  std::array<int, kShapeClasses> counts{};
  for (int64_t i = 0; i < dataset.size(); ++i) {
    int32_t label = -1;
    ReadShape(dataset, i, &label);
    ++counts.at(label);
  }
  for (const int count : counts) EXPECT_EQ(count, 10);
}

TEST(ShapesDatasetTest, NormalisationIsThatOfTheImages) {
  const ShapesDataset dataset(9, ShapesSplit::kTrain, 3000);
  std::array<double, 3> sum{};
  std::array<double, 3> squares{};
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto pixels = ReadShape(dataset, i);
    for (size_t byte = 0; byte < pixels.size(); ++byte) {
      sum[byte % 3] += pixels[byte];
      squares[byte % 3] += static_cast<double>(pixels[byte]) * pixels[byte];
    }
  }
  const double count = 3000.0 * 1024;
  for (int channel = 0; channel < 3; ++channel) {
    const double mean = sum[channel] / count;
    // Colours are drawn per image, so the spread of a mean over 3,000 of them is about 50 /
    // sqrt(3000).
    EXPECT_NEAR(mean, dataset.format().mean[channel], 3);
    EXPECT_NEAR(std::sqrt(squares[channel] / count - mean * mean), dataset.format().std[channel],
                3);
  }
}

// The images must be the same bytes on every machine, or runs could not be compared.
TEST(ShapesDatasetTest, BytesArePinned) {
  const ShapesDataset dataset(1, ShapesSplit::kTrain, 1000);
  uint64_t all = 0;
  for (int64_t i = 0; i < 100; ++i) all = all * 31 + Fingerprint(ReadShape(dataset, i));
  EXPECT_EQ(all, 0x630ec577398cbc13ULL);
}

TEST(ShapesDatasetDeathTest, IndexOutOfRangeIsAProgrammersError) {
  const ShapesDataset dataset(1, ShapesSplit::kTrain, 10);
  std::vector<uint8_t> pixels(kImageBytes);
  int32_t label = 0;
  EXPECT_DEATH((void)dataset.Read(10, pixels, label).ok(), "image 10 of 10");
  EXPECT_DEATH((void)dataset.Read(-1, pixels, label).ok(), "image -1 of 10");
}

}  // namespace
}  // namespace thimble
