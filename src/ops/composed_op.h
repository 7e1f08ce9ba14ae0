// Parts of the definition of an op that does the work of others.
#pragma once

#include "thimble/graph/op_def.h"

namespace thimble {

// The same port for another op.
void AddInput(OpDef& op, const OpPort& port, bool is_optional = false);
void AddOutput(OpDef& op, const OpPort& port);
// Which outputs may reuse which inputs, by their names. `op` must have the ports.
void AddReuses(OpDef& op, const OpDef& from);
void AddAttributes(OpDef& op, const OpDef& from);

}  // namespace thimble
