// Turns a graph with dense parameters into one that stores only the active elements of some.
#pragma once

#include "thimble/base/result.h"
#include "thimble/grad/update_spec.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"
#include "thimble/program/sparsity/sparse_tensors.h"

namespace thimble {

// Names of the residents.
inline constexpr const char* kSparsePattern = "sparse.pattern";
inline constexpr const char* kSparseWeights = "sparse.weights";
inline constexpr const char* kSparseMomentum = "sparse.momentum";
inline constexpr const char* kSparseGradients = "sparse.gradients";
inline constexpr const char* kSparseThreshold = "sparse.threshold";  // f32 [1]
inline constexpr const char* kSparseMoved = "sparse.moved";          // i32 [1], output of rewiring

// Weight gradients that are used in backward and by one node only are computed and used by one
// node, so that they need no memory. (Their check then reads dy: what is not finite there is not
// finite in them.)
void FuseGradientUses(Graph& graph, const SparseTensors& tensors);

// Packs these parameters, their optimizer state and what is left of their gradients.
void PackTensors(Graph& graph, const SparseTensors& tensors);

// How weights are dropped and grown.
struct RewiringSpec {
  bool is_set = false;  // SET; otherwise DSR
  int64_t quota = 0;    // weights to move each time
  uint64_t seed = 1;
};

// The graph of one rewiring, for the pools that `trained` has.
Result<Graph> MakeRewiring(const Graph& trained, const OpRegistry& ops,
                           const SparseTensors& tensors, const RewiringSpec& spec);

}  // namespace thimble
