#include "thimble/device/cuda/capture.h"

#include <algorithm>
#include <vector>

#include "thimble/device/cuda/check.h"

namespace thimble {
namespace {

using Nodes = std::vector<cudaGraphNode_t>;

// The nodes that the next node of the stream will wait for.
Nodes NextWaitsFor(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 0;
#if CUDART_VERSION >= 13000
  THIMBLE_CUDA(
      cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
#else
  THIMBLE_CUDA(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, nullptr, &nodes, &count));
#endif
  return {nodes, nodes + count};
}

void LetNextWaitFor(cudaStream_t stream, Nodes nodes) {
#if CUDART_VERSION >= 13000
  THIMBLE_CUDA(cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nullptr, nodes.size(),
                                                   cudaStreamSetCaptureDependencies));
#else
  THIMBLE_CUDA(cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nodes.size(),
                                                   cudaStreamSetCaptureDependencies));
#endif
}

// Adds the nodes that are not yet included.
void Join(Nodes& nodes, const Nodes& more) {
  for (cudaGraphNode_t node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

}  // namespace

void CaptureInOrder(cudaStream_t stream, const Work& work) {
  const Nodes first = NextWaitsFor(stream);
  std::vector<Nodes> ends;  // the last nodes of each piece
  std::vector<bool> followed(work.pieces, false);
  for (size_t piece = 0; piece < work.pieces; ++piece) {
    Nodes waited_for = first;
    for (size_t earlier : work.after(piece)) {
      Join(waited_for, ends[earlier]);
      followed[earlier] = true;
    }
    LetNextWaitFor(stream, waited_for);
    work.enqueue(piece);
    ends.push_back(NextWaitsFor(stream));
  }
  // Later work on the stream waits for all pieces.
  Nodes last = first;
  for (size_t piece = 0; piece < work.pieces; ++piece) {
    if (!followed[piece]) Join(last, ends[piece]);
  }
  LetNextWaitFor(stream, last);
}

}  // namespace thimble
