// Lets convolutions normalise their input while they read it, so that the outputs of batch norms,
// and the gradients by them, take no memory:
//
//   batch_norm(x) → y, conv2d(y), …         batch_norm_statistics(x), norm_conv2d(x), …
//   conv2d_grad_input → dy, batch_norm_grad(x, dy)         norm_conv2d_grad_input(x)
//
// Same bits, with statistics of all samples, of numbers in fp16, on the CPU.
#pragma once

#include <memory>

#include "thimble/graph/graph.h"
#include "thimble/program/technique.h"

namespace thimble {

struct FoldedNorms {
  int norms = 0;
  int gradients = 0;
};

// For graphs with their gradients and updates. Renumbers values and nodes: earlier ids are invalid,
// names stay valid.
FoldedNorms FoldNorms(Graph& graph);

std::unique_ptr<const Technique> MakeFoldNorms();

}  // namespace thimble
