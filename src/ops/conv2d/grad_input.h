// The CPU kernel of conv2d_grad_input, for kernels of ops that compute it as a part of theirs.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/graph/kernel.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/tensor/number_pointer.h"

namespace thimble {

struct GradInputTypes {
  DType w;
  DType dy;
  DType dx;
};

size_t GradInputScratchBytes(const Conv2dGeometry& g, const GradInputTypes& types,
                             const KernelLimits& limits);
void RunGradInput(const Conv2dGeometry& g, const TensorView& w, const TensorView& dy, Numbers dx,
                  std::span<std::byte> scratch, ThreadPool& pool);

}  // namespace thimble
