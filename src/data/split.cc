#include "thimble/data/split.h"

#include <fmt/format.h>

#include <utility>

#include "thimble/base/check.h"
#include "thimble/base/philox.h"
#include "thimble/data/permutation.h"

namespace thimble {
namespace {

// The images at positions [first, first + size) of a fixed permutation of another data set.
class PermutedRange final : public ImageDataset {
 public:
  PermutedRange(std::shared_ptr<const ImageDataset> all, const RandomSource& source, int64_t first,
                int64_t size)
      : all_(std::move(all)), source_(source), first_(first), size_(size) {}

  const ImageFormat& format() const override { return all_->format(); }
  int64_t size() const override { return size_; }

  Result<void> Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const override {
    THIMBLE_CHECK(index >= 0 && index < size_, "image {} of {}", index, size_);
    return all_->Read(PermuteIndex(source_, /*epoch=*/0, all_->size(), first_ + index), pixels,
                      label);
  }

 private:
  std::shared_ptr<const ImageDataset> all_;
  RandomSource source_;
  int64_t first_;
  int64_t size_;
};

}  // namespace

Result<DatasetSplit> SplitDataset(std::unique_ptr<ImageDataset> dataset, int64_t held_out,
                                  uint64_t seed) {
  const int64_t size = dataset->size();
  if (held_out < 1 || held_out >= size) {
    return BadInput(
        fmt::format("validation: cannot hold out {} of {} training images, expected 1 to {}",
                    held_out, size, size - 1));
  }
  const RandomSource source(seed, RandomPurpose::kSplit);
  const std::shared_ptr<const ImageDataset> all = std::move(dataset);
  return DatasetSplit{
      std::make_unique<PermutedRange>(all, source, held_out, size - held_out),
      std::make_unique<PermutedRange>(all, source, 0, held_out),
  };
}

}  // namespace thimble
