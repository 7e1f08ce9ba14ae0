// The data set "shapes": 32x32 colour images of ten geometric shapes, computed from (seed, split,
// index) when they are read. Position, size, rotation, colours, whether figure or background is
// brighter, a gradient and noise are random, so that single pixels say little about the class; only
// the outline determines it.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/base/philox.h"
#include "thimble/data/image_dataset.h"

namespace thimble {

// Part of the random counter, so that the splits share no random numbers.
enum class ShapesSplit : uint32_t { kTrain = 0, kTest = 1 };

class ShapesDataset final : public ImageDataset {
 public:
  // Requires 1 <= size < 2^31.
  ShapesDataset(uint64_t seed, ShapesSplit split, int64_t size);

  const ImageFormat& format() const override { return format_; }
  int64_t size() const override { return size_; }
  // The label is index mod 10, so that every prefix is balanced. Never fails.
  Result<void> Read(int64_t index, std::span<uint8_t> pixels, int32_t& label) const override;

 private:
  RandomSource source_;
  ShapesSplit split_;
  int64_t size_;
  ImageFormat format_;
};

}  // namespace thimble
