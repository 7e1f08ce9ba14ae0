// A few tiny ops, so that tests of graphs and differentiation do not depend on the built-in ones.
#pragma once

#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// scale (x -> y = factor * x), multiply (a, b -> y), add (a, b -> y), blocked (x -> y, no
// gradient), count (x -> n, an integer).
OpRegistry ToyOps();

// A value without producer, by default with role input.
ValueId AddInput(Graph& graph, const std::string& name, const Shape& shape,
                 Role role = Role::kInput);

// Appends a node and returns its first output; aborts on failure.
ValueId AppendToy(Graph& graph, const OpRegistry& ops, std::string_view op,
                  std::vector<ValueId> inputs, Attributes attributes = {});

}  // namespace thimble
