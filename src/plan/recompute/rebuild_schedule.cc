#include "thimble/plan/recompute/rebuild_schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace thimble {
namespace {

bool MayDrop(const Chain& chain, ValueId value) {
  return chain.values[value.index()].kind == ChainValue::Kind::kForward;
}

// The forward nodes that must run again for the values that this backward step reads.
std::vector<size_t> MissingFor(const Graph& graph, const Chain& chain, size_t step,
                               const std::vector<bool>& present) {
  std::vector<bool> wanted(chain.values.size(), false);
  for (ValueId input : graph.node(chain.backward[step]).inputs) wanted[input.index()] = true;
  std::vector<size_t> positions;
  for (size_t position = chain.forward.size(); position-- > 0;) {
    const Rerun& rerun = chain.reruns[position];
    const bool needed =
        std::any_of(rerun.outputs.begin(), rerun.outputs.end(), [&](ValueId output) {
          return MayDrop(chain, output) && wanted[output.index()] && !present[output.index()];
        });
    if (!needed) continue;
    positions.push_back(position);
    for (ValueId input : rerun.inputs) wanted[input.index()] = true;
  }
  std::reverse(positions.begin(), positions.end());
  return positions;
}

// The values between blocks, in order.
std::vector<ValueId> BlockEnds(const Graph& graph, const OpRegistry& ops, const Chain& chain) {
  std::vector<ValueId> ends;
  for (size_t stage = 0; stage + 1 < chain.num_stages; ++stage) {
    ValueId only;
    size_t crossing = 0;
    for (size_t v = 0; v < chain.values.size(); ++v) {
      if (!chain.Crosses(ValueId(v), stage)) continue;
      only = ValueId(v);
      ++crossing;
    }
    if (crossing != 1 || chain.values[only.index()].first != stage) continue;
    const Node& producer = graph.node(graph.value(only).producer);
    if (!ops.Get(producer.op).cheap_to_rebuild()) ends.push_back(only);
  }
  return ends;
}

std::vector<bool> KeptBlocks(const std::vector<ValueId>& ends, size_t stride, size_t num_values) {
  std::vector<bool> kept(num_values, false);
  for (size_t i = stride - 1; i < ends.size(); i += stride) kept[ends[i].index()] = true;
  return kept;
}

std::vector<bool> KeptWithoutCheap(const Graph& graph, const OpRegistry& ops, const Chain& chain) {
  std::vector<bool> kept(chain.values.size(), true);
  for (NodeId id : chain.forward) {
    if (!ops.Get(graph.node(id).op).cheap_to_rebuild()) continue;
    for (ValueId output : graph.node(id).outputs) kept[output.index()] = false;
  }
  return kept;
}

}  // namespace

RebuildSchedule ScheduleKeeping(const Graph& graph, const Chain& chain,
                                const std::vector<bool>& kept) {
  RebuildSchedule schedule;
  for (size_t position = 0; position < chain.forward.size(); ++position) {
    schedule.push_back({false, position});
  }
  std::vector<bool> present = kept;
  for (size_t step = 0; step < chain.backward.size(); ++step) {
    for (size_t position : MissingFor(graph, chain, step, present)) {
      schedule.push_back({false, position});
      for (ValueId output : chain.reruns[position].outputs) {
        if (MayDrop(chain, output) && chain.values[output.index()].backward_end > step) {
          present[output.index()] = true;
        }
      }
    }
    schedule.push_back({true, step});
  }
  return schedule;
}

RebuildSchedule MakeNamedSchedule(const Graph& graph, const OpRegistry& ops, const Chain& chain,
                                  const RecomputeSpec& spec) {
  const size_t num_values = chain.values.size();
  switch (spec.kind) {
    case RecomputeKind::kCheap:
      return ScheduleKeeping(graph, chain, KeptWithoutCheap(graph, ops, chain));
    case RecomputeKind::kBlocks:
      return ScheduleKeeping(graph, chain,
                             KeptBlocks(BlockEnds(graph, ops, chain), spec.stride, num_values));
    case RecomputeKind::kSqrt: {
      const std::vector<ValueId> ends = BlockEnds(graph, ops, chain);
      const auto stride =
          static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(ends.size()))));
      return ScheduleKeeping(graph, chain,
                             KeptBlocks(ends, std::max<size_t>(1, stride), num_values));
    }
    default:
      return ScheduleKeeping(graph, chain, std::vector<bool>(num_values, true));
  }
}

}  // namespace thimble
