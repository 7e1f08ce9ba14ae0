#include "thimble/device/cuda/early_edges.h"

#include <vector>

#include "thimble/device/cuda/check.h"

namespace thimble {

bool HasEarlyLaunch() { return IsHopperOrLater(); }

#if CUDART_VERSION >= 12030  // edges have data from here on
namespace {

// Edges from[i] -> to[i].
struct Edges {
  std::vector<cudaGraphNode_t> from;
  std::vector<cudaGraphNode_t> to;
  std::vector<cudaGraphEdgeData> data;

  void Resize(size_t count) {
    from.resize(count);
    to.resize(count);
    data.resize(count);
  }
  void Add(cudaGraphNode_t begin, cudaGraphNode_t end, const cudaGraphEdgeData& about) {
    from.push_back(begin);
    to.push_back(end);
    data.push_back(about);
  }
};

#if CUDART_VERSION >= 13000
constexpr auto kGetEdges = cudaGraphGetEdges;
constexpr auto kAddEdges = cudaGraphAddDependencies;
constexpr auto kRemoveEdges = cudaGraphRemoveDependencies;
#else
constexpr auto kGetEdges = cudaGraphGetEdges_v2;
constexpr auto kAddEdges = cudaGraphAddDependencies_v2;
constexpr auto kRemoveEdges = cudaGraphRemoveDependencies_v2;
#endif

Edges EdgesOf(cudaGraph_t graph) {
  Edges edges;
  size_t count = 0;
  THIMBLE_CUDA(kGetEdges(graph, nullptr, nullptr, nullptr, &count));
  edges.Resize(count);
  if (count == 0) return edges;
  THIMBLE_CUDA(kGetEdges(graph, edges.from.data(), edges.to.data(), edges.data.data(), &count));
  return edges;
}

bool IsKernel(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  THIMBLE_CUDA(cudaGraphNodeGetType(node, &type));
  return type == cudaGraphNodeTypeKernel;
}

}  // namespace

void LetKernelsBeginEarly(cudaGraph_t graph) {
  if (!HasEarlyLaunch()) return;
  cudaGraphEdgeData early{};
  early.from_port = cudaGraphKernelNodePortProgrammatic;
  early.type = cudaGraphDependencyTypeProgrammatic;
  const Edges all = EdgesOf(graph);
  Edges before;
  Edges after;
  for (size_t i = 0; i < all.from.size(); ++i) {
    if (all.data[i].type != cudaGraphDependencyTypeDefault) continue;
    if (!IsKernel(all.from[i]) || !IsKernel(all.to[i])) continue;
    before.Add(all.from[i], all.to[i], all.data[i]);
    after.Add(all.from[i], all.to[i], early);
  }
  if (before.from.empty()) return;
  THIMBLE_CUDA(kRemoveEdges(graph, before.from.data(), before.to.data(), before.data.data(),
                            before.from.size()));
  THIMBLE_CUDA(
      kAddEdges(graph, after.from.data(), after.to.data(), after.data.data(), after.from.size()));
}
#else
void LetKernelsBeginEarly(cudaGraph_t /*graph*/) {}
#endif

}  // namespace thimble
