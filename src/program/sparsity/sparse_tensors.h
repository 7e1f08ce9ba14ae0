// Which parameters are sparse, and their places in the pattern and the pools that they share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

struct SparseTensor {
  std::string name;  // of the parameter
  int64_t elements = 0;
  int64_t first_block = 0;  // of the pattern
};

struct SparseTensors {
  std::vector<SparseTensor> tensors;
  int64_t blocks = 0;    // of the pattern
  int64_t elements = 0;  // of all tensors
  int64_t active = 0;    // numbers that are stored; constant
};

// Whether a name matches one of the comma-separated patterns, in which * stands for any characters.
bool MatchesPattern(std::string_view patterns, std::string_view name);

// The filters of convolutions in a graph that become sparse: those whose names match `patterns` or,
// if there are none, those larger than 1x1 except the first one. kBadInput if there are none, with
// the reason.
Result<SparseTensors> ChooseSparseTensors(const Graph& graph, const OpRegistry& ops,
                                          double sparsity, std::string_view patterns);

}  // namespace thimble
