// The ops that come with Thimble, made from op_list.inc.
#pragma once

#include "thimble/graph/op_def.h"

namespace thimble {

// Built on first use; the same object ever after.
const OpRegistry& BuiltinOps();

}  // namespace thimble
