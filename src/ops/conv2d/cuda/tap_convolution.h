// TapConvolution: a sum over taps, the common form of forward convolutions and input gradients on a
// GPU:
//   result[i, j] = sum over taps of source[i * step + row, j * step + column] * weight[tap]
// A forward convolution is one such grid. The input gradient is one for each residue of the pixel
// position modulo the stride, since different taps reach them; its source is dy.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "thimble/device/cuda/math.h"
#include "thimble/tensor/number_pointer.h"

namespace thimble {

inline constexpr int kMaxTaps = 49;     // of one grid
inline constexpr int kMaxResidues = 4;  // strides 1 and 2
// Source channels are processed in parts of so many words of 32 bits.
inline constexpr int kWordsPerPart = 16;

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

// All floats for fp32, otherwise of any type.
struct TapArrays {
  ConstNumbers source;
  ConstNumbers weights;
  PackedPlace packed;  // of the weights, if they are packed
  ConstNumbers other;  // its data is null, or added to the result
  Numbers result;      // must not overlap `other`
};

// Whether a tile fits into shared memory.
bool FitsTapConvolution(const TapConvolution& convolution, Math math);
// Factors are rounded to the type in which they are multiplied; sums are fp32, rounded once when
// they are stored. Requires that it fits.
void LaunchTapConvolution(cudaStream_t stream, const TapConvolution& convolution, Math math,
                          const TapArrays& arrays);

}  // namespace thimble
