// A small residual network and three steps of its training, for tests that change its graph and
// compare the results bit for bit.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/model/network_builder.h"

namespace thimble {

// Training graph of the network as the builder makes it, without what BuildNetwork adds. Its sizes
// are not multiples of a SIMD vector.
NetworkBuilder::Built MakeResidualNetwork();

// The number of nodes with this op.
size_t CountOps(const Graph& graph, std::string_view op);

// Adds a test failure for each SIMD target on which three steps with the rewritten graph give other
// bits than three steps with the network as built.
void ExpectSameTraining(const Graph& rewritten, const NetworkBuilder::Built& built);

// Appends backward and update, trains, and returns all parameters, momenta and statistics.
std::map<std::string, std::vector<std::byte>> TrainThreeSteps(Graph graph,
                                                              const std::vector<InitRule>& inits,
                                                              const OpRegistry& ops);

}  // namespace thimble
