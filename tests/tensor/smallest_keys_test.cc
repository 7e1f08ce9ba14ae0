#include "thimble/tensor/smallest_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "thimble/base/philox.h"

namespace thimble {
namespace {

std::vector<uint32_t> RandomKeys(size_t count, uint32_t bound) {
  const RandomSource source(1, RandomPurpose::kTest);
  std::vector<uint32_t> keys;
  for (size_t i = 0; i < count; ++i) keys.push_back(UniformBelow(source.Words(0, 0, i)[0], bound));
  return keys;
}

// The chosen positions.
std::vector<size_t> Choose(const std::vector<uint32_t>& keys, int64_t wanted) {
  SmallestKeys chosen = FindSmallestKeys(wanted, [&](KeyRange range, const auto& visit) {
    for (const uint32_t key : keys) {
      if (range.Contains(key)) visit(key);
    }
  });
  std::vector<size_t> positions;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (chosen.Take(keys[i])) positions.push_back(i);
  }
  return positions;
}

// The same by sorting.
std::vector<size_t> FirstOfSorted(const std::vector<uint32_t>& keys, int64_t wanted) {
  std::vector<size_t> positions(keys.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  std::stable_sort(positions.begin(), positions.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  positions.resize(static_cast<size_t>(wanted));
  std::sort(positions.begin(), positions.end());
  return positions;
}

TEST(SmallestKeys, AreTheFirstOfTheSortedOnes) {
  for (const uint32_t bound : {1U, 2U, 50U, 5000U, UINT32_MAX}) {  // many equal keys to hardly any
    const std::vector<uint32_t> keys = RandomKeys(700, bound);
    for (const int64_t wanted : {0, 1, 2, 37, 350, 699, 700}) {
      EXPECT_EQ(Choose(keys, wanted), FirstOfSorted(keys, wanted)) << bound << " " << wanted;
    }
  }
}

TEST(SmallestKeys, MayBeTheLargestThereAre) {
  const std::vector<uint32_t> keys = {UINT32_MAX, 0, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX};
  for (int64_t wanted = 0; wanted <= 5; ++wanted) {
    EXPECT_EQ(Choose(keys, wanted), FirstOfSorted(keys, wanted)) << wanted;
  }
}

TEST(SmallestKeys, OfNoneAreNone) { EXPECT_TRUE(Choose({}, 0).empty()); }

// A visitor may ignore the range.
TEST(SmallestKeys, KeysOutsideTheRangeDoNotCount) {
  const std::vector<uint32_t> keys = RandomKeys(700, UINT32_MAX);
  const auto visit_all = [&](KeyRange /*range*/, const auto& visit) {
    for (const uint32_t key : keys) visit(key);
  };
  const SmallestKeys chosen = FindSmallestKeys(100, visit_all);
  EXPECT_EQ(
      std::count_if(keys.begin(), keys.end(), [&](uint32_t key) { return key < chosen.below; }),
      100 - chosen.equal);
}

}  // namespace
}  // namespace thimble
