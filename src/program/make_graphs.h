// Makes all graphs of a program, the input of the planner, from the forward graphs of a task and
// the requested techniques.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/base/nearly_equal_parts.h"
#include "thimble/base/result.h"
#include "thimble/grad/training_graph.h"
#include "thimble/plan/program.h"
#include "thimble/tensor/batch_shape.h"

namespace thimble {

// The requested techniques.
struct TechniqueRequest {
  std::map<std::string, std::string> values = {};  // by lever; missing ones have their plain value
  std::set<std::string> without = {};              // names of techniques to leave out
};

// Different shapes.
using BatchShapes = std::vector<BatchShape>;

struct ProgramSpec {
  BatchShapes train = {};  // the first is that of full batches
  BatchShapes evaluate = {};
  UpdateSpec update = {};
  TechniqueRequest techniques = {};
  // More forward graphs, with names and groups, to which the techniques are applied as to those of
  // evaluation.
  std::vector<NamedGraph> others = {};
};

// Makes the forward graph of a task for a batch, for training or for evaluation. Its output
// kLossName is the loss.
using MakeForward = FunctionRef<Result<Graph>(const BatchShape& shape, bool training)>;
inline constexpr const char* kLossName = "loss";

struct ProgramGraphs {
  // The first graph is training with a full batch or with its first part.
  std::vector<NamedGraph> graphs;
  // If steps are trained in parts: the technique that split them. Its saving is not known here.
  std::optional<TechniqueRecord> split_by;
  UpdateSpec update = {};  // as the techniques changed it
};

Result<ProgramGraphs> MakeGraphs(const ProgramSpec& spec, const OpRegistry& ops,
                                 MakeForward forward);

// The parts in which the samples of a batch are trained.
NearlyEqualParts CutBatch(const BatchShape& shape, const TechniqueRequest& techniques);
// The same for each shape.
using BatchCuts = std::map<BatchShape, NearlyEqualParts>;
BatchCuts CutBatches(const BatchShapes& shapes, const TechniqueRequest& techniques);
// Whether some batches are split. Then all are trained as parts, even if there is only one.
bool InParts(const BatchCuts& cuts);

// Names of the graphs. `part` and `batch` are a part and the batch that it belongs to.
std::string TrainName(const BatchShape& shape);
std::string PartName(const BatchShape& part, const BatchShape& batch);
std::string UpdateName(const BatchShape& shape);
std::string EvaluateName(const BatchShape& shape);

}  // namespace thimble
