// Streams and graphs of the emulated CUDA runtime. A stream runs its work at once, or records it.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

struct CUgraphNode_st {
  cudaGraphNodeType type;
  std::function<void()> work;
  std::vector<cudaGraphNode_t> after;  // nodes that it waits for
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in the order of their recording
};

// The same, ready to run: an instantiated graph does not depend on the one that it was made from.
struct CUgraphExec_st {
  struct Node {
    std::function<void()> work;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};

struct CUstream_st {
  std::unique_ptr<CUgraph_st> recorded;  // null unless it records
  bool forbids_other_calls = false;      // cudaStreamCaptureModeGlobal
  std::vector<cudaGraphNode_t> next_waits_for;
};

namespace gpu_emulator {

CUgraphExec_st MakeReady(const CUgraph_st& graph);
// Runs the nodes in a random order in which each follows those that it waits for.
void RunNodes(const CUgraphExec_st& graph);
// Runs the work now, or records it if the stream is being captured.
void RunOrRecord(cudaStream_t stream, cudaGraphNodeType type, std::function<void()> work);

}  // namespace gpu_emulator
