// The built-in ops of Thimble, from op_list.inc.
#pragma once

#include "thimble/graph/op_def.h"

namespace thimble {

// Built on first use; always returns the same object.
const OpRegistry& BuiltinOps();

}  // namespace thimble
