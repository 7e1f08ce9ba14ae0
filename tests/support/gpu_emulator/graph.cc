#include "tests/support/gpu_emulator/graph.h"

#include <map>
#include <random>
#include <utility>

namespace gpu_emulator {

CUgraphExec_st MakeReady(const CUgraph_st& graph) {
  CUgraphExec_st ready;
  std::map<cudaGraphNode_t, size_t> index;
  for (const auto& node : graph.nodes) {
    CUgraphExec_st::Node& copy = ready.nodes.emplace_back();
    copy.work = node->work;
    for (const cudaGraphNode_t earlier : node->after) copy.after.push_back(index.at(earlier));
    index.emplace(node.get(), index.size());
  }
  return ready;
}

void RunNodes(const CUgraphExec_st& graph) {
  static std::minstd_rand random;
  std::vector<size_t> waits(graph.nodes.size());
  std::vector<std::vector<size_t>> followers(graph.nodes.size());
  std::vector<size_t> free;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    waits[i] = graph.nodes[i].after.size();
    for (const size_t earlier : graph.nodes[i].after) followers[earlier].push_back(i);
    if (waits[i] == 0) free.push_back(i);
  }
  while (!free.empty()) {
    std::swap(free[random() % free.size()], free.back());
    const size_t next = free.back();
    free.pop_back();
    graph.nodes[next].work();
    for (const size_t follower : followers[next]) {
      if (--waits[follower] == 0) free.push_back(follower);
    }
  }
}

void RunOrRecord(cudaStream_t stream, cudaGraphNodeType type, std::function<void()> work) {
  if (stream == nullptr || stream->recorded == nullptr) {
    work();
    return;
  }
  auto node = std::make_unique<CUgraphNode_st>();
  node->type = type;
  node->work = std::move(work);
  node->after = stream->next_waits_for;
  stream->next_waits_for = {node.get()};
  stream->recorded->nodes.push_back(std::move(node));
}

}  // namespace gpu_emulator
