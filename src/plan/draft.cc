#include "thimble/plan/draft.h"

#include <algorithm>

#include "thimble/base/byte_size.h"

namespace thimble {

std::vector<LiveRange> ValueLiveRanges(const PlanDraft& draft) {
  const Graph& graph = draft.graph;
  const size_t num_steps = draft.order.size();
  std::vector<LiveRange> live(graph.values.size());
  for (size_t step = 0; step < num_steps; ++step) {
    const Node& node = graph.node(draft.order[step]);
    for (ValueId input : node.inputs) live[input.index()].end = step + 1;
    for (ValueId output : node.outputs) live[output.index()] = {step, step + 1};
  }
  for (ValueId output : graph.outputs) live[output.index()].end = num_steps;
  for (size_t index = 0; index < live.size(); ++index) {
    if (IsPersistent(graph.values[index].role)) live[index].end = num_steps;
    // An unused input still needs memory when the caller writes it.
    live[index].end = std::max(live[index].end, live[index].first + 1);
  }
  return live;
}

std::vector<DraftBuffer> Buffers(const PlanDraft& draft) {
  const Graph& graph = draft.graph;
  const std::vector<LiveRange> live = ValueLiveRanges(draft);
  std::vector<DraftBuffer> buffers;
  std::vector<size_t> buffer_of(graph.values.size(), SIZE_MAX);
  for (size_t index = 0; index < graph.values.size(); ++index) {
    const size_t root = draft.storage[index].index();
    if (buffer_of[root] == SIZE_MAX) {
      buffer_of[root] = buffers.size();
      buffers.push_back(
          {graph.values[root].name, 0, live[root], IsPersistent(graph.values[root].role), {}, {}});
    }
    DraftBuffer& buffer = buffers[buffer_of[root]];
    buffer.size_bytes =
        std::max(buffer.size_bytes, RoundUp(graph.values[index].size_bytes(), kArenaWordBytes));
    buffer.live.first = std::min(buffer.live.first, live[index].first);
    buffer.live.end = std::max(buffer.live.end, live[index].end);
    buffer.values.push_back(ValueId(index));
  }
  for (size_t step = 0; step < draft.order.size(); ++step) {
    const size_t bytes = draft.kernels[draft.order[step].index()].scratch_bytes;
    if (bytes == 0) continue;
    const Node& node = graph.node(draft.order[step]);
    buffers.push_back({"scratch of " + (node.layer.empty() ? node.op : node.layer) + " " + node.op,
                       RoundUp(bytes, kArenaWordBytes),
                       {step, step + 1},
                       false,
                       {},
                       step});
  }
  return buffers;
}

std::vector<Interval> IntervalsOf(const std::vector<DraftBuffer>& buffers) {
  std::vector<Interval> intervals;
  for (const DraftBuffer& buffer : buffers) {
    intervals.push_back({buffer.resident ? 0 : buffer.size_bytes, buffer.live});
  }
  return intervals;
}

size_t LivePeakBytes(const PlanDraft& draft) {
  return LowerBoundBytes(IntervalsOf(Buffers(draft)));
}

std::vector<ValueId> SeparateStorage(const Graph& graph) {
  std::vector<ValueId> storage;
  for (size_t index = 0; index < graph.values.size(); ++index) storage.emplace_back(index);
  std::vector<ValueId> previous(graph.values.size());
  for (const Carry& carry : graph.carries) previous[carry.to.index()] = carry.from;
  for (ValueId& place : storage) {
    while (previous[place.index()].valid()) place = previous[place.index()];
    const PackedIn& packed = graph.value(place).packed;
    if (packed.pool.valid()) place = packed.pool;
  }
  return storage;
}

}  // namespace thimble
