// Descriptions of arrays of 16-bit numbers for the copy engine of sm_90 (bulk_copy.cuh).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "thimble/tensor/dtype.h"

namespace thimble {

// Images (batch, height, width, channels) and the windows that a convolution takes from them.
struct WindowedImages {
  int batch, height, width, channels;
  int stride;
  int first_row, first_column;  // of an image's first window; may be outside
  int down, across;             // windows of an image
};

// Copies of `pixels` windows' pixels at one tap, `chunk` channels of each. Pixels follow each other
// window by window, line by line, image by image.
CUtensorMap MapOfWindows(const void* images, DType type, const WindowedImages& windows, int chunk,
                         int pixels);
// Copies of boxes. Sizes are those of an array without gaps, the innermost dimension first; `box`
// has as many. The innermost side of a box is a chunk.
CUtensorMap MapOfBoxes(const void* array, DType type, std::span<const uint64_t> sizes,
                       std::span<const uint32_t> box);

// Whether the copy engine can read images by windows: limits of its instruction.
bool CanMapWindows(const WindowedImages& windows);

}  // namespace thimble
