// LineConvolution: the product that forward and input gradient share. The windows of neighbouring
// pixels overlap in each line of the image, so no matrix of windows is built: a strip of pixels of
// one output line reads its rows directly from a few image lines, tap row by tap row.
//
//   chunk   some output lines; their image lines are packed with zeros at the sides, into a band
//   region  some output channels and tap rows, whose weights are packed at a time for all threads
//
// However the product is divided, an element is one chain of multiply-adds over the window without
// tap rows outside the image. So results are bit-identical for any number of threads and any
// scratch size, per SIMD target.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/device/cpu/gemm/packer.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/conv2d/line_packer.h"
#include "thimble/ops/conv2d/window_grid.h"

namespace thimble {

// The place of output pixel (image, i, j) in the output.
struct PixelOffsets {
  int64_t first = 0;  // of (0, 0, 0)
  int64_t image_stride = 0;
  int64_t line_stride = 0;
  int64_t pixel_stride = 0;
  size_t At(int64_t image, int64_t i, int64_t j) const {
    return static_cast<size_t>(first + image * image_stride + i * line_stride + j * pixel_stride);
  }
};

// One convolution of the images, with its own weights and output pixels.
struct LinePhase {
  WindowGrid grid;
  PixelOffsets pixels;  // `out_channels` numbers each
};
inline constexpr size_t kMaxLinePhases = 16;

// Packs a block of the weights (window elements, out channels) of a phase, as a Packer does.
using PhaseWeights =
    FunctionRef<void(size_t phase, const MatrixBlock& block, float* panel, size_t stride)>;

// Phases are processed together, chunk by chunk, if scratch allows. Holds a reference to the packer
// of the weights, which must outlive it (no temporaries).
struct LineConvolution {
  std::span<const LinePhase> phases;  // 1 to kMaxLinePhases
  int64_t out_channels = 0;
  LinePacker images;  // with the sizes in the grids
  PhaseWeights weights;
  Numbers out;              // overwritten
  ConstNumbers added = {};  // a tensor like the output, added to it; or null
  // Whether images and weights consist of pairs of bf16 numbers (gemm/pairs.h): two channels each,
  // which the grids count as one. Requires MultipliesPairs().
  bool pairs = false;
};

// At most threads * scratch_bytes_per_thread, unless a single window is larger than that.
size_t LineConvolutionScratchBytes(std::span<const LinePhase> phases, int64_t out_channels,
                                   size_t threads, size_t scratch_bytes_per_thread);

// Requires at least the bytes given for these phases and the pool's threads, 64-byte aligned.
// Windows without any element give zeros.
void RunLineConvolution(const LineConvolution& convolution, std::span<std::byte> scratch,
                        ThreadPool& pool);

}  // namespace thimble
