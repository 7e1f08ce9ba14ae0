// From the forward graphs of a task to all graphs of a program, with every technique that was asked
// for: what the planner lays out and plans.
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

// Which techniques: values of levers by name (those that are missing are plain), and what is left
// out.
struct TechniqueRequest {
  std::map<std::string, std::string> values = {};
  std::set<std::string> without = {};
};

// Sizes of batches, largest first.
using BatchSizes = std::set<int64_t, std::greater<>>;

struct ProgramSpec {
  BatchSizes train = {};  // the first is a full one
  BatchSizes evaluate = {};
  OptimizerSpec optimizer = {};
  TechniqueRequest techniques = {};
};

// The forward graph of a task for so many samples, for training or for evaluation. The loss is its
// output kLossName.
using MakeForward = FunctionRef<Result<Graph>(int64_t samples, bool training)>;
inline constexpr const char* kLossName = "loss";

struct ProgramGraphs {
  // Training with a full batch, or the first part of one, stands first.
  std::vector<NamedGraph> graphs;
  // Where a step is done in parts: the technique that cut it. Its saving is not known here.
  std::optional<TechniqueRecord> cut;
};

Result<ProgramGraphs> MakeGraphs(const ProgramSpec& spec, const OpRegistry& ops,
                                 MakeForward forward);

// In what parts a batch of so many samples is trained.
NearlyEqualParts CutBatch(int64_t samples, const TechniqueRequest& techniques);
// The same for each size of batch. If full batches, the first size, are whole, so are the others.
using BatchCuts = std::map<int64_t, NearlyEqualParts>;
BatchCuts CutBatches(const BatchSizes& sizes, const TechniqueRequest& techniques);

// Names of the graphs.
std::string TrainName(int64_t samples);
std::string PartName(const BatchShare& share);
std::string UpdateName(int64_t samples);
std::string EvaluateName(int64_t samples);

}  // namespace thimble
