// TapConvolution: a sum over taps, the common form of forward convolutions and input gradients on a
// GPU:
//   result[i, j] = sum over taps of source[i * step + row, j * step + column] * weight[tap]
// A forward convolution is one such grid. The input gradient is one for each residue of the pixel
// position modulo the stride, since different taps reach them; its source is dy.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "thimble/ops/conv2d/cuda/math.h"

namespace thimble {

inline constexpr int kMaxTaps = 49;          // of one grid
inline constexpr int kMaxResidues = 4;       // strides 1 and 2
inline constexpr int kChannelsPerPart = 16;  // source channels processed at a time

struct Tap {
  int16_t row;     // source row, relative to the grid position's first
  int16_t column;  // likewise
  int16_t weight;  // index of the kernel's tap
};

// A grid of result pixels and the taps that reach them.
struct TapGrid {
  int rows, columns;            // positions
  int out_row, out_column;      // result pixel of position (0, 0)
  int first_row, first_column;  // source pixel of position (0, 0) and tap offset 0; may be outside
  int num_taps;                 // none: the result is zero there
  Tap taps[kMaxTaps];
};

// Plain numbers, passed to the GPU by value.
struct TapConvolution {
  int batch;
  int height, width, channels;              // of the source
  int out_height, out_width, out_channels;  // of the result
  int out_step;                             // result pixels between neighbouring positions
  int step;                                 // tile pixels between neighbouring positions
  int load_step;  // source pixels between neighbouring tile pixels: above 1 where one tap reaches
                  // all
  // Rows and columns that a tile has in addition to those of its positions' first taps.
  int reach_rows, reach_columns;
  // Weight of result channel n, source channel k, tap t: n * n_stride + k * k_stride + t *
  // t_stride.
  int n_stride, k_stride, t_stride;
  int num_grids;
  TapGrid grids[kMaxResidues];
};

struct TapArrays {
  const float* source;
  const float* weights;
  const float* other;  // null, or added to the result
  float* result;       // must not overlap `other`
};

// Whether a tile fits into shared memory.
bool FitsTapConvolution(const TapConvolution& convolution);
// Factors are rounded to TF32 or multiplied unrounded; sums are fp32. Requires that it fits.
void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                          const TapArrays& arrays);

}  // namespace thimble
