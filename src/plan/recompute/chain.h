// Chain: a training graph as a sequence of stages, for deciding what to keep and what to rebuild.
//
// Forward nodes have a fixed order and are divided into stages; between two stages is a cut.
// Backward steps have a fixed order, too; each belongs to a stage: the last one that, for it or any
// later step, is the first to read a forward value which the step reads (or that makes this value,
// if no stage reads it). So backward processes the stages from the last to the first:
//
//   stage 0 | stage 1 | … | stage L-1      forward, left to right
//           ^ cut: the values that later stages, or their backward steps, read
//   …backward of stage 1, of stage 0       backward, right to left
//
// A value crosses the cuts from the stage that makes it to the last stage that needs it, so two
// numbers per value determine the set of each cut. Fixed values are never dropped, and no decision
// depends on them: small values, values that the update or the caller reads, and values that could
// only be rebuilt after one of their inputs was overwritten (weights that backward updates, state
// that forward changes).
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/plan/draft.h"

namespace thimble {

// How a forward node is run again. `outputs` are the values of the graph that it rebuilds.
struct Rerun {
  std::string op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  KernelChoice kernel;
  double work = 0;  // see WorkOf
};

struct ChainValue {
  enum class Kind {
    // Always kept: persistent, input, small, read by the update or the caller, or made from a value
    // that is overwritten before it could be rebuilt.
    kFixed,
    kForward,   // may be dropped and rebuilt
    kBackward,  // made by a backward step
  };
  Kind kind = Kind::kFixed;
  size_t size_bytes = 0;
  size_t first = 0;  // forward: the stage that makes it; backward: the step
  // Forward: the last stage that needs it. Backward: the last step that reads it, or
  // backward.size().
  size_t last = 0;
  // Forward only: the last backward step that reads it, plus one; 0 if none does.
  size_t backward_end = 0;
  // Forward only: the next stage after `first` whose forward nodes read it; kNoStage if none does.
  size_t next_reader = kNoStage;

  static constexpr size_t kNoStage = std::numeric_limits<size_t>::max();
};

struct Chain {
  std::vector<NodeId> forward;
  std::vector<size_t> stage_of_forward;       // by position in `forward`, ascending
  std::vector<Rerun> reruns;                  // likewise
  std::vector<size_t> forward_scratch_bytes;  // likewise, of the first run
  std::vector<NodeId> backward;
  std::vector<size_t> stage_of_backward;       // by position in `backward`, descending
  std::vector<size_t> backward_scratch_bytes;  // likewise
  std::vector<NodeId> update;
  size_t num_stages = 0;
  std::vector<ChainValue> values;  // by ValueId

  // Positions [first, end) in `forward` or `backward` of the nodes of a stage.
  LiveRange ForwardOf(size_t stage) const;
  LiveRange BackwardOf(size_t stage) const;
  // Whether the value crosses the cut after this stage.
  bool Crosses(ValueId value, size_t stage) const {
    const ChainValue& v = values[value.index()];
    return v.kind == ChainValue::Kind::kForward && v.first <= stage && stage < v.last;
  }
};

// The estimated cost of running a node, in floating-point operations: max(flops, 8 * bytes moved),
// since a machine does about 8 operations while it moves a byte. Independent of the machine, so
// that plans are the same everywhere.
double WorkOf(const Graph& graph, const OpRegistry& ops, const Node& node);

// Above this many stages, neighbours are merged: first after norms and activations, then where most
// values cross.
inline constexpr size_t kMaxStages = 128;

// The chain in the draft's order. The draft must have kernels. Without backward nodes there are no
// stages.
Result<Chain> MakeChain(const PlanDraft& draft, const OpRegistry& ops, const PlanOptions& options,
                        size_t max_stages = kMaxStages);

}  // namespace thimble
