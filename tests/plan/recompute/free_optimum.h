// The least work of any schedule of a tiny chain: forward nodes may run whenever their inputs
// exist, values may be dropped at any time, and only the order of backward steps is fixed. Found by
// searching all sets of values.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <tuple>
#include <vector>

#include "thimble/plan/recompute/chain.h"

namespace thimble::toy {

class FreeOptimum {
 public:
  FreeOptimum(const Graph& graph, const OpRegistry& ops, const Chain& chain)
      : graph_(graph), ops_(ops), chain_(chain), bit_(chain.values.size(), -1) {
    for (size_t v = 0; v < chain.values.size(); ++v) {
      if (chain.values[v].kind != ChainValue::Kind::kForward) continue;
      bit_[v] = static_cast<int>(values_.size());
      values_.emplace_back(v);
    }
    for (const Rerun& rerun : chain.reruns) {
      const bool makes = Mask(rerun.outputs) != 0;
      once_ += makes ? rerun.work : 0;
    }
  }

  size_t num_values() const { return values_.size(); }

  // Work in addition to one run of each node, within a limit on the peak; infinite if nothing fits.
  double LeastWork(size_t limit_bytes) const {
    using Entry = std::tuple<double, uint32_t, size_t>;  // work, mask, backward steps done
    const size_t num_masks = size_t{1} << values_.size();
    std::vector<double> best(num_masks * (chain_.backward.size() + 1),
                             std::numeric_limits<double>::infinity());
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto reach = [&](double work, uint32_t mask, size_t done) {
      double& known = best[done * num_masks + mask];
      if (work >= known) return;
      known = work;
      queue.emplace(work, mask, done);
    };
    reach(0, 0, 0);
    while (!queue.empty()) {
      const auto [work, mask, done] = queue.top();
      queue.pop();
      if (work > best[done * num_masks + mask]) continue;
      if (done == chain_.backward.size()) return std::max(0.0, work - once_);
      for (size_t bit = 0; bit < values_.size(); ++bit) {
        if ((mask >> bit & 1) != 0) reach(work, mask & ~(uint32_t{1} << bit), done);
      }
      for (const Rerun& rerun : chain_.reruns) {
        const uint32_t made = Mask(rerun.outputs);
        if (made == 0 || (Mask(rerun.inputs) & ~mask) != 0) continue;
        TryRun({rerun.op, rerun.inputs, rerun.outputs, rerun.kernel.scratch_bytes}, mask, done,
               limit_bytes, [&](uint32_t after) { reach(work + rerun.work, after | made, done); });
      }
      const Node& node = graph_.node(chain_.backward[done]);
      if ((Mask(node.inputs) & ~mask) != 0) continue;
      TryRun({node.op, node.inputs, node.outputs, chain_.backward_scratch_bytes[done]}, mask, done,
             limit_bytes, [&](uint32_t after) { reach(work, after, done + 1); });
    }
    return std::numeric_limits<double>::infinity();
  }

 private:
  struct Run {
    const std::string& op;
    const std::vector<ValueId>& inputs;
    const std::vector<ValueId>& outputs;
    size_t scratch_bytes;
  };

  size_t Bytes(ValueId v) const { return chain_.values[v.index()].size_bytes; }
  bool IsFixed(ValueId v) const {
    return chain_.values[v.index()].kind == ChainValue::Kind::kFixed;
  }
  uint32_t Mask(const std::vector<ValueId>& values) const {
    uint32_t mask = 0;
    for (ValueId v : values) mask |= bit_[v.index()] < 0 ? 0 : uint32_t{1} << bit_[v.index()];
    return mask;
  }
  size_t AliveBytes(uint32_t mask, size_t done) const {
    size_t bytes = 0;
    for (size_t bit = 0; bit < values_.size(); ++bit) {
      bytes += (mask >> bit & 1) != 0 ? Bytes(values_[bit]) : 0;
    }
    for (const ChainValue& value : chain_.values) {
      const bool gradient = value.kind == ChainValue::Kind::kBackward;
      if (gradient && value.first < done && done <= value.last) bytes += value.size_bytes;
    }
    return bytes;
  }

  // With nothing dropped, and with each input dropped that an output may overwrite.
  template <class Reach>
  void TryRun(const Run& run, uint32_t mask, size_t done, size_t limit_bytes, Reach reach) const {
    size_t bytes = AliveBytes(mask, done) + run.scratch_bytes;
    for (ValueId v : run.outputs) bytes += IsFixed(v) ? 0 : Bytes(v);
    if (bytes <= limit_bytes) reach(mask);
    const OpDef& op = ops_.Get(run.op);
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      for (size_t i = 0; i < run.inputs.size(); ++i) {
        if (IsFixed(run.outputs[o]) || !op.MayReuse(o, i)) continue;
        if (Bytes(run.inputs[i]) != Bytes(run.outputs[o])) continue;
        if (bytes - Bytes(run.outputs[o]) <= limit_bytes) reach(mask & ~Mask({run.inputs[i]}));
      }
    }
  }

  const Graph& graph_;
  const OpRegistry& ops_;
  const Chain& chain_;
  std::vector<int> bit_;  // by ValueId
  std::vector<ValueId> values_;
  double once_ = 0;
};

}  // namespace thimble::toy
