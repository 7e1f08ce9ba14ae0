// The sums of conv2d_grad_weight: dw (window, O) = sum over output pixels of the outer product of
// the window's elements and dy at the pixel; in tiles, dw (O, window) = dy (O, pixels) * windows
// (pixels, window).
#pragma once

#include "thimble/ops/conv2d/grad_weight_lines.h"

namespace thimble {

class ThreadPool;

// Where finished sums are written: (O, window), from this output channel on.
struct GradWeightTarget {
  Numbers numbers;
  size_t first_column = 0;
};

// Sums these units of run.cut over all lines and writes them.
void SumGradWeightUnits(const GradWeightRun& run, IndexRange units, const GradWeightTarget& to,
                        ThreadPool& pool);

}  // namespace thimble
