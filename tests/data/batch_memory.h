// Memory for batches of images, and training batches as a source of whole batches.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "thimble/data/batch_parts.h"
#include "thimble/data/batches.h"
#include "thimble/data/prefetcher.h"

namespace thimble {

inline BatchParts WholeBatches(const TrainingSource& batches) {
  return {batches, [](const BatchShape& shape) { return NearlyEqualParts{shape.samples, 1}; }};
}

// Images and labels.
struct ImageBatch {
  ImageBatch() = default;
  ImageBatch(int64_t count, int64_t image_bytes)
      : images(static_cast<size_t>(count * image_bytes)), labels(static_cast<size_t>(count)) {}

  SlotMemory arrays() {
    return {std::as_writable_bytes(std::span(images)), std::as_writable_bytes(std::span(labels))};
  }
  friend bool operator==(const ImageBatch&, const ImageBatch&) = default;

  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
};

// Memory for the batch with this number.
inline ImageBatch RoomFor(const BatchSource& source, int64_t number) {
  return {source.ShapeAt(number).samples, source.fields()[0].sample_bytes};
}

inline ImageBatch Filled(const BatchSource& source, int64_t number) {
  ImageBatch batch = RoomFor(source, number);
  EXPECT_TRUE(source.Fill(number, batch.arrays()).ok());
  return batch;
}

}  // namespace thimble
