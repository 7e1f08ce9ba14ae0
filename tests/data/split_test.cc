#include "thimble/data/split.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

// The labels of NumberedDataset are the indices of its images.
std::set<int32_t> Labels(const ImageDataset& dataset) {
  std::set<int32_t> labels;
  std::vector<uint8_t> pixels(static_cast<size_t>(dataset.format().image_bytes()));
  for (int64_t i = 0; i < dataset.size(); ++i) {
    int32_t label = -1;
    EXPECT_TRUE(dataset.Read(i, pixels, label).ok());
    EXPECT_EQ(pixels[0], label % 251);
    labels.insert(label);
  }
  return labels;
}

TEST(SplitTest, PartsAreDisjointAndComplete) {
  const auto split = SplitDataset(std::make_unique<NumberedDataset>(500), 60, 3);
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->train->size(), 440);
  EXPECT_EQ(split->validation->size(), 60);
  std::set<int32_t> all = Labels(*split->train);
  all.merge(Labels(*split->validation));
  EXPECT_EQ(all.size(), 500U);
}

TEST(SplitTest, SeedChoosesTheImages) {
  const auto held_out = [](uint64_t seed) {
    return Labels(*SplitDataset(std::make_unique<NumberedDataset>(500), 60, seed)->validation);
  };
  EXPECT_EQ(held_out(3), held_out(3));
  EXPECT_NE(held_out(3), held_out(4));
}

TEST(SplitTest, RefusesSizesThatLeaveAPartEmpty) {
  for (const int64_t held_out : {-1, 0, 10, 11}) {
    const auto split = SplitDataset(std::make_unique<NumberedDataset>(10), held_out, 3);
    ASSERT_FALSE(split.ok()) << held_out;
    EXPECT_EQ(split.error().kind, ErrorKind::kBadInput);
  }
}

}  // namespace
}  // namespace thimble
