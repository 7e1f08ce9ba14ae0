// Makes all graphs of a program, the input of the planner, from the forward graphs of a task and
// the requested techniques.
#pragma once

#include <cstdint>
#include <functional>
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

namespace thimble {

// The requested techniques.
struct TechniqueRequest {
  std::map<std::string, std::string> values = {};  // by lever; missing ones have their plain value
  std::set<std::string> without = {};              // names of techniques to leave out
};

// Batch sizes, largest first.
using BatchSizes = std::set<int64_t, std::greater<>>;

struct ProgramSpec {
  BatchSizes train = {};  // the first is the full batch
  BatchSizes evaluate = {};
  UpdateSpec update = {};
  TechniqueRequest techniques = {};
};

// Makes the forward graph of a task for this many samples, for training or for evaluation. Its
// output kLossName is the loss.
using MakeForward = FunctionRef<Result<Graph>(int64_t samples, bool training)>;
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

// The parts in which a batch of this many samples is trained.
NearlyEqualParts CutBatch(int64_t samples, const TechniqueRequest& techniques);
// The same for each batch size. If full batches (the first size) are not split, none are.
using BatchCuts = std::map<int64_t, NearlyEqualParts>;
BatchCuts CutBatches(const BatchSizes& sizes, const TechniqueRequest& techniques);

// Names of the graphs.
std::string TrainName(int64_t samples);
std::string PartName(const BatchShare& share);
std::string UpdateName(int64_t samples);
std::string EvaluateName(int64_t samples);

}  // namespace thimble
